"""Temporary folders that a kill does not leave for ever: all of one process lie in one, which its successors remove."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from smith.errors import Unavailable
from smith.paths import remove_tree

PREFIX = "smith-tmp-"

_lock = threading.Lock()
_own: dict[int, tuple[Path, int]] = {}
"""Folder and lock of each process: a forked child inherits the entry of its parent, and makes its own."""


@contextlib.contextmanager
def folder(name: str) -> Iterator[Path]:
    """A fresh folder, removed at the end. Raises :class:`Unavailable` where none can be made."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=own(), ignore_cleanup_errors=True) as made:
        yield Path(made)


def own() -> Path:
    """This process's folder in the system's temporary folder; it lives as long as the process.

    The kernel frees its lock when the process dies in whatever way; the first call of another process removes it then.
    Raises :class:`Unavailable` where it cannot be made.
    """
    pid = os.getpid()
    with _lock:
        known = _own.get(pid)
        if known is None or not known[0].is_dir():
            known = _own[pid] = _make()
            atexit.register(_remove, pid, *known)
    return known[0]


def _make() -> tuple[Path, int]:
    try:
        _sweep(Path(tempfile.gettempdir()))
        while True:
            made = Path(tempfile.mkdtemp(prefix=PREFIX))
            held = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(held, fcntl.LOCK_EX)
            if made.exists():  # else a sweep came between making and locking it
                return made, held
            os.close(held)
    except OSError as error:
        raise Unavailable(f"{tempfile.gettempdir()}: no temporary folder can be made: {error.strerror}") from error


def _sweep(place: Path) -> None:
    """Remove the folders of processes of this user that are gone."""
    for left in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if left.is_symlink() or left.stat().st_uid != os.geteuid():
                continue
            handle = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(left)
            finally:
                os.close(handle)


def _remove(pid: int, made: Path, held: int) -> None:
    # A forked child inherits the exit handler, but not the right to remove its parent's folder.
    if os.getpid() == pid:
        remove_tree(made)
        os.close(held)
