"""An entry: a run's evidence in a folder that is named by the digest of its manifest.

It holds what a verdict and every figure can be found from again: the run's configuration without anything of the
machine, and of each attempt the patch, the grade, the attempt's record and what its agent says of itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from smith.errors import BadInput, RecordError
from smith.evaluate.attempt import AGENT, ATTEMPT, GRADE, PATCH
from smith.evaluate.run import RUN_FILE, AttemptState, states_in
from smith.paths import Layout
from smith.records.attempt import RunConfig
from smith.records.base import read
from smith.records.leaderboard import Manifest

MANIFEST, FIGURES = "manifest.json", "figures.json"
OF_ATTEMPT = (PATCH, GRADE, ATTEMPT, AGENT)
"""The files of an attempt that are sealed; the last only where a model was asked."""
MOST_ATTEMPTS = 100_000
LARGEST = 16 << 20
"""Bytes of one file."""


@dataclass(frozen=True)
class Entry:
    """An entry as it lies on disk."""

    folder: Path
    digest: str
    """Of the manifest's bytes."""
    manifest: Manifest
    config: RunConfig
    states: tuple[AttemptState, ...]


def entry_folders(layout: Layout, panel: str | None = None) -> list[Path]:
    """Every folder that should be an entry (of ``panel``, or of all), sorted."""
    root = layout.leaderboard
    found = root.glob(f"{panel or '*'}/*") if root.is_dir() else ()
    return sorted((p for p in found if p.is_dir() and not p.is_symlink()), key=os.fspath)


def load_entry(folder: Path) -> Entry:
    """Read an entry. Whether its files are those of its manifest is for the check to say.

    Raises :class:`RecordError` where manifest or configuration cannot be read.
    """
    where = f"{folder.parent.name}/{folder.name}"
    data = plain_file(folder / MANIFEST, f"{where}/{MANIFEST}")
    manifest = Manifest.loads(data, f"{where}/{MANIFEST}")
    config = RunConfig.loads(plain_file(folder / RUN_FILE, f"{where}/{RUN_FILE}"), f"{where}/{RUN_FILE}")
    if len(config.tasks) * config.attempts > MOST_ATTEMPTS:
        raise RecordError(f"{where}/{RUN_FILE}: plans more than {MOST_ATTEMPTS} attempts")
    return Entry(folder, hashlib.sha256(data).hexdigest(), manifest, config, tuple(states_in(folder, config)))


def find_entry(layout: Layout, digest: str) -> Entry:
    """The entry whose digest begins with ``digest``. Raises :class:`BadInput` where that is none or not one."""
    names = {folder.name: folder for folder in entry_folders(layout)}
    found = [name for name in names if name.startswith(digest)] if digest else []
    if len(found) != 1:
        what = "no entry" if not found else f"{len(found)} entries"
        raise BadInput(f"{what} of the leaderboard begins with {digest[:80]!r}", hint="smith leaderboard")
    return load_entry(names[found[0]])


def plain_file(path: Path, where: str) -> bytes:
    """The bytes of a file of an entry. Raises :class:`RecordError` for a link, or one that is too large."""
    if path.is_symlink():
        raise RecordError(f"{where}: a link is no evidence")
    if path.is_file() and (size := path.stat().st_size) > LARGEST:
        raise RecordError(f"{where}: {size} bytes, more than {LARGEST}")
    try:
        return read(path)
    except RecordError as error:
        raise RecordError(f"{where}: {error.message.rpartition(': ')[2]}") from error


def files_below(folder: Path) -> Iterator[str]:
    """Every file or link below ``folder``, relative to it."""
    for parent, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in (*names, *links):
            yield Path(os.path.relpath(os.path.join(parent, name), folder)).as_posix()
