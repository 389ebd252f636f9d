"""Blobs by object id, from one ``git cat-file --batch`` for a whole history."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Sequence
from types import TracebackType

from smith import process
from smith.errors import CommandFailed
from smith.git.objects import plain
from smith.git.repository import Repository

# So many requests fit into a pipe: neither side ever waits for the other to read.
_AT_ONCE = 500
# Git would keep a hundred megabytes of bases in each process, and map all of the packs. So much is as fast.
_FRUGAL = ("core.deltaBaseCacheLimit=16m", "core.packedGitWindowSize=1m", "core.packedGitLimit=8m")


class Blobs:
    """A reader of blobs; a context manager that ends its process. ``largest`` bounds what is kept of a blob."""

    def __init__(self, repo: Repository, *, largest: int) -> None:
        self._repo = repo
        self._largest = largest
        self._child: subprocess.Popen[bytes] | None = None
        self.missing: set[str] = set()
        """What was asked for and is not here."""

    def __enter__(self) -> Blobs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:
            process.kill_group(self._child)
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            self._child = None

    def read(self, oids: Iterable[str]) -> dict[str, bytes | None]:
        """The bytes of each blob; None where it is missing here, is no blob or is too large.

        Raises :class:`~smith.errors.CommandFailed` when git ends in between.
        """
        wanted = list(dict.fromkeys(oids))
        found: dict[str, bytes | None] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            self._ask(some)
            found.update((oid, self._answer()) for oid in some)
        return found

    def _ask(self, oids: Sequence[str]) -> None:
        if self._child is None:
            # A partial clone's own configuration would make git look for what is missing elsewhere, and die of it.
            settings = [part for setting in _FRUGAL for part in ("-c", setting)]
            self._child = plain(self._repo).popen(*settings, "cat-file", "--batch")
        assert self._child.stdin is not None
        try:
            self._child.stdin.write("".join(f"{oid}\n" for oid in oids).encode())
            self._child.stdin.flush()
        except BrokenPipeError as error:
            raise CommandFailed(["git", "cat-file", "--batch"], "ended early") from error

    def _answer(self) -> bytes | None:
        assert self._child is not None and self._child.stdout is not None
        header = self._child.stdout.readline().split()
        if not header:
            raise CommandFailed(["git", "cat-file", "--batch"], "ended early")
        if len(header) != 3:
            self.missing.add(header[0].decode("ascii", "replace"))
            return None
        size = int(header[2])
        data = self._child.stdout.read(size + 1)[:-1]
        return data if header[1] == b"blob" and size <= self._largest else None
