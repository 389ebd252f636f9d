"""Places: fresh folders in which one tree is built and tested, gone afterwards whatever a program left in them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from smith import process
from smith.errors import Unavailable

PREFIX = "place-"


@dataclass(frozen=True)
class Place:
    """``source`` holds the tree, ``lib`` what smith itself shows; ``home`` and ``tmp`` are scratch."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def lib(self) -> Path:
        return self.root / "lib"

    @classmethod
    @contextlib.contextmanager
    def create(cls, work: Path) -> Iterator[Place]:
        """A new place below ``work``, removed at the end. Places that dead processes left are removed first.

        Each place has a lock file beside it, out of reach of what runs in it, which the kernel frees when this
        process dies. Raises :class:`Unavailable` where nothing can be written.
        """
        try:
            work.mkdir(parents=True, exist_ok=True)
            clean(work)
            lock, path = _claim(work)
        except OSError as error:
            raise Unavailable(f"{work}: cannot be written: {error.strerror}") from error
        try:
            place = cls(path.resolve())
            for folder in (place.root, place.source, place.home, place.tmp, place.lib):
                folder.mkdir()
                folder.chmod(0o755)  # whatever the umask: another user id works in here
            yield place
        finally:
            _remove(path, lock)

    def refresh(self) -> None:
        """Empty ``home`` and ``tmp``: no cache of one run may reach the next."""
        for folder in (self.home, self.tmp):
            _force_remove(folder)
            folder.mkdir()
            folder.chmod(0o755)


def clean(work: Path) -> None:
    """Remove the places of processes that are gone."""
    for lock_file in work.glob(f"{PREFIX}*.lock"):
        lock = _try_lock(lock_file)
        if lock is not None:
            _remove(lock_file.with_suffix(""), lock)


def _claim(work: Path) -> tuple[int, Path]:
    while True:
        path = work / f"{PREFIX}{secrets.token_hex(6)}"
        lock_file = path.with_name(f"{path.name}.lock")
        lock_file.touch(exist_ok=False)
        lock = _try_lock(lock_file)
        if lock is not None:
            return lock, path


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock, or None when somebody else does or the file is gone meanwhile."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.stat(path)):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def _remove(path: Path, lock: int) -> None:
    """Remove a place, then its lock. What cannot be removed keeps its lock file, so that a later clean tries again."""
    _force_remove(path)
    if not path.exists():
        path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
    os.close(lock)


def _force_remove(path: Path) -> None:
    """By coreutils, which walk folders nested thousands deep; Python's stack and its path length would not do."""
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        if path.exists():
            process.run([*command, "--", path])
