"""The files of one tree after another: the first is listed, each next one is derived from what differs.

Consecutive landings share nearly all of their files, so the difference is a hundredth of the listing. One ``git
diff-tree --stdin`` answers for a whole history.
"""

from __future__ import annotations

import contextlib
import subprocess
from types import TracebackType

from smith import process
from smith.errors import CommandFailed
from smith.git.objects import list_tree, shown
from smith.git.repository import Repository

_LINKS = ("120000", "160000")


class Listing:
    """Path to blob of the tree that :meth:`move_to` was last called with. A context manager that ends its process.

    Links and submodules are left out. Paths are surrogate-escaped where they are not UTF-8.
    """

    def __init__(self, repo: Repository) -> None:
        self.blobs: dict[str, str] = {}
        self._repo = repo
        self._tree: str | None = None
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Listing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def move_to(self, tree: str) -> dict[str, str | None]:
        """Make ``tree`` the current one; the paths that differ from the last with their blobs, None for what is gone.

        Raises :class:`~smith.errors.BadInput` or :class:`~smith.errors.CommandFailed` where the tree cannot be read.
        """
        if tree == self._tree:
            return {}
        if self._tree is None:
            listed = {
                shown(entry.path): entry.oid
                for entry in list_tree(self._repo, tree)
                if entry.kind == "blob" and entry.mode not in _LINKS
            }
            changes: dict[str, str | None] = dict(listed)
        else:
            changes = self._difference(self._tree, tree)
        for path, oid in changes.items():
            if oid is None:
                self.blobs.pop(path, None)
            else:
                self.blobs[path] = oid
        self._tree = tree
        return changes

    def _difference(self, old: str, new: str) -> dict[str, str | None]:
        argv = ["diff-tree", "--stdin", "-r", "--raw", "-z", "--no-abbrev", "--no-renames"]
        if self._child is None:
            self._child = self._repo.popen(*argv)
        assert self._child.stdin is not None and self._child.stdout is not None
        # A line that is no object id is echoed at once: it marks the end of the answer.
        end = f"end of {new}\n".encode()
        answer = bytearray()
        try:
            self._child.stdin.write(f"{old} {new}\n".encode() + end)
            self._child.stdin.flush()
            while not answer.endswith(end):
                chunk = self._child.stdout.read1(1 << 20)  # type: ignore[attr-defined]
                if not chunk:
                    raise BrokenPipeError
                answer += chunk
        except BrokenPipeError as error:
            self._stop()
            raise CommandFailed(["git", *argv], f"ended early between {old} and {new}") from error
        return _changes(bytes(answer[: -len(end)]).partition(b"\n")[2])

    def _stop(self) -> None:
        if self._child is not None:
            process.kill_group(self._child)
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            self._child = None


def _changes(records: bytes) -> dict[str, str | None]:
    """Path to new blob, from raw records (``:modes oids status NUL path NUL``)."""
    fields = records.split(b"\0")
    changes: dict[str, str | None] = {}
    for meta, path in zip(fields[0::2], fields[1::2], strict=False):
        _, mode, _, oid, status = meta.decode("ascii").split(" ")
        changes[shown(path)] = None if status == "D" or mode in _LINKS else oid
    return changes
