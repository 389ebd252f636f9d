"""What a grade stands on and no submission may change: the toolchain, smith's own modules in a place, hidden tests.

The sandbox shows all of it read-only; a digest before and after says that this was so.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from smith.grade.trial import Trial

PACKAGES = ("torch", "triton", "numpy", "_pytest", "pytest", "pluggy")
"""Of the environment: size, times, mode and file number of each file of these."""


def digest(trial: Trial) -> str:
    """Of all that; equal as long as nothing has changed."""
    found = hashlib.sha256()
    for name, data in (*_toolchain(trial.environment.python, trial.environment.binds), *_own(trial)):
        found.update(b"%d %s %d " % (len(name), name, len(data)))
        found.update(data)
    return found.hexdigest()


def _toolchain(python: Path, binds: Sequence[Path]) -> Iterator[tuple[bytes, bytes]]:
    yield os.fsencode(python), _stat(python)
    folders = {
        f for bind in binds for f in (bind, *bind.glob("lib/python3*/site-packages"), *bind.glob("lib/python3*"))
    }
    for folder in sorted(folders):
        for package in PACKAGES:
            if (folder / package).is_dir():
                yield from _files(folder / package)
        for start in sorted((*folder.glob("*.pth"), *folder.glob("*customize.py"))):
            yield os.fsencode(start), _stat(start)


def _files(folder: Path) -> Iterator[tuple[bytes, bytes]]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = Path(where, name)
            yield os.fsencode(path), _stat(path)


def _stat(path: Path) -> bytes:
    try:
        found = path.stat()
    except OSError:
        return b"gone"
    return b"%d %d %o %d" % (found.st_size, found.st_mtime_ns, found.st_mode, found.st_ino)


def _own(trial: Trial) -> Iterator[tuple[bytes, bytes]]:
    """Contents: what lies here was written by smith a moment ago, and is small."""
    places = [trial.place.lib, *(trial.place.source / name for name in trial.bundle.selection.places)]
    for place in places:
        for path in sorted(p for p in (place.rglob("*") if place.is_dir() else [place]) if p.is_file()):
            if "__pycache__" not in path.parts:
                yield os.fsencode(path), path.read_bytes()
