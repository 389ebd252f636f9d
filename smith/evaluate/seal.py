"""Sealed evidence: a manifest of digests, written last, by which anybody sees whether anything was changed since."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from smith.errors import RecordError
from smith.records.seal import Seal

SEAL = "seal.json"


def seal(folder: Path, run: str, task: str, number: int) -> None:
    """Write down what lies in an attempt's folder; a seal that is there already stands."""
    if not (folder / SEAL).exists():
        Seal(run=run, task=task, attempt=number, files=dict(_files(folder))).save(folder / SEAL)


def altered(folder: Path) -> list[str] | None:
    """What is not as it was sealed, in words; None where there is no seal. Raises nothing for a broken one."""
    try:
        sealed = Seal.load(folder / SEAL).files
    except RecordError as error:
        return [str(error)] if (folder / SEAL).exists() else None
    now = dict(_files(folder))
    found = [
        f"{name}: {'is gone' if name not in now else 'was changed'}" for name in sealed if now.get(name) != sealed[name]
    ]
    return found + [f"{name}: was added" for name in now if name not in sealed]


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Path and digest of each file below, in order. An agent may have left links: they are not followed."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted([*names, *(one for one in folders if (Path(place) / one).is_symlink())]):
            path = Path(place) / name
            inner = path.relative_to(folder).as_posix()
            if inner == SEAL:
                continue
            if path.is_symlink():
                yield inner, hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
            elif path.is_file():
                with path.open("rb") as file:
                    yield inner, hashlib.file_digest(file, "sha256").hexdigest()
