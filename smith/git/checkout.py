"""Write a tree into a folder: exact bytes, exact modes, whatever the tree holds."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from smith.errors import BadInput, Unavailable
from smith.git.objects import GITLINK, SYMLINK, TreeEntry, check_paths, list_tree, read_blobs, shown
from smith.git.repository import Repository
from smith.paths import remove_tree

MTIME_NS = 1_000_000_000 * 10**9
"""The time of every file written, so that time tells nothing. A compiled Python cache must therefore never be shared
between two trees: it compares time and size only."""


def materialise(repo: Repository, tree: str, dest: Path, *, missing: Literal["fail", "skip"] = "fail") -> list[str]:
    """Write ``tree`` into ``dest``, which must be empty or absent, and return the paths whose content is missing.

    No filter, line-end conversion or substitution is applied. Files are 644 or 755 whatever the umask, submodules
    become empty folders. Raises :class:`BadInput` for an unsafe or contradictory tree, a used ``dest`` and (with
    ``missing="fail"``) a missing blob; :class:`Unavailable` when the disk is full or ``dest`` cannot be written.
    After a failure ``dest`` is empty again.
    """
    entries = list(list_tree(repo, tree))
    check_paths((e.path for e in entries), f"tree {tree}")
    root = os.fsencode(dest)
    with _explained(dest, tree):
        dest.mkdir(parents=True, exist_ok=True)
        if any(os.scandir(dest)):
            raise BadInput(f"{dest} is not empty", hint="give a new folder")
        try:
            return _write(repo, root, entries, missing)
        except BaseException:
            for child in dest.iterdir():
                remove_tree(child)
            raise


@contextlib.contextmanager
def _explained(dest: Path, tree: str) -> Iterator[None]:
    """Turn errors of the file system into ours."""
    try:
        yield
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        at = shown(os.fsencode(error.filename or ""))
        raise BadInput(f"tree {tree}: {at!a} collides with another entry or file") from error
    except OSError as error:
        raise Unavailable(f"{dest}: cannot be written: {error.strerror}") from error


def _write(repo: Repository, root: bytes, entries: list[TreeEntry], missing: str) -> list[str]:
    folders = _Folders(root)
    for entry in entries:
        if entry.mode == GITLINK:
            folders.make(entry.path)
    blobs = [e for e in entries if e.kind == "blob"]
    links: list[tuple[bytes, bytes]] = []
    absent: list[str] = []
    for entry, (_, data) in zip(blobs, read_blobs(repo, (e.oid for e in blobs)), strict=True):
        if data is None:
            if missing == "fail":
                raise BadInput(f"{shown(entry.path)!a}: its content {entry.oid} is missing in {repo.git_dir}")
            absent.append(shown(entry.path))
            continue
        folders.make(os.path.dirname(entry.path))
        if entry.mode == SYMLINK:
            links.append((entry.path, data))
        else:
            _write_file(os.path.join(root, entry.path), data, 0o755 if int(entry.mode, 8) & 0o100 else 0o644)
    # Links come last: a damaged tree with a link and a folder of one name must not lead a write outside.
    for path, target in links:
        _write_link(os.path.join(root, path), target)
    folders.finish()
    return absent


def _write_file(path: bytes, data: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fchmod(handle, mode)
        os.utime(handle, ns=(MTIME_NS, MTIME_NS))
    finally:
        os.close(handle)


def _write_link(path: bytes, target: bytes) -> None:
    if not target or b"\0" in target:
        raise BadInput(f"{shown(path)!a}: not the target of a link: {target[:40]!r}")
    os.symlink(target, path)
    os.utime(path, ns=(MTIME_NS, MTIME_NS), follow_symlinks=False)


class _Folders:
    """Makes folders as they are needed, each once."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._made = {b""}

    def make(self, path: bytes) -> None:
        lacking = []
        while path not in self._made:
            lacking.append(path)
            path = os.path.dirname(path)
        for folder in reversed(lacking):
            os.mkdir(os.path.join(self._root, folder))
            self._made.add(folder)

    def finish(self) -> None:
        """Set modes (whatever the umask) and times, now that nothing is added any more."""
        for path in self._made:
            whole = os.path.join(self._root, path)
            os.chmod(whole, 0o755)
            os.utime(whole, ns=(MTIME_NS, MTIME_NS))
