"""Trees: list, read, write, lay one over another, write into a folder and read back from one.

The one door to what :mod:`~smith.git.objects`, :mod:`~smith.git.checkout` and :mod:`~smith.git.folder` hold.
"""

from __future__ import annotations

from collections.abc import Iterable

from smith.git.checkout import MTIME_NS, materialise
from smith.git.folder import snapshot, tree_of_folder
from smith.git.objects import TreeEntry, list_tree, read_blobs, read_file, write_blob, write_tree
from smith.git.repository import Repository

__all__ = [
    "MTIME_NS",
    "TreeEntry",
    "list_tree",
    "materialise",
    "overlay",
    "read_blobs",
    "read_file",
    "snapshot",
    "tree_of_folder",
    "write_blob",
    "write_tree",
]


def overlay(repo: Repository, tree: str, over_tree: str, removed: Iterable[str] = ()) -> str:
    """``tree`` without ``removed`` (a file, or a folder with all below it), every entry of ``over_tree`` laid over it.

    A file may replace a folder and the other way round. Contents missing in a partial mirror stay missing. Raises
    :class:`~smith.errors.BadInput` when a tree cannot be read.
    """
    gone = {path.encode("utf-8", "surrogateescape").rstrip(b"/") for path in removed}

    def stays(path: bytes) -> bool:
        if not gone:
            return True
        parts = path.split(b"/")
        return not any(b"/".join(parts[: n + 1]) in gone for n in range(len(parts)))

    below = [entry for entry in list_tree(repo, tree) if stays(entry.path)]
    return write_tree(repo, [*below, *list_tree(repo, over_tree)], missing_ok=True)
