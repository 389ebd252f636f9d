"""A process that only classifies: ``python -m smith.mine.worker``. It imports little, since each one pays for it.

Both ends are smith's own, so what goes between them is pickled: first the repository and the rules, then chunks in and
shapes out, each with its length before it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO, Any, Self

from smith import process
from smith.errors import Unavailable
from smith.git.history import Change
from smith.git.repository import Repository
from smith.mine.blobs import Blobs
from smith.mine.classify import Classifier, Shape
from smith.mine.rules import Rules

Changes = tuple[Change, ...]
Chunk = Sequence[tuple[bytes, Changes]]
"""Raw changes of pull requests, each with the name of its shape."""

_PR_SET_PDEATHSIG = 1
_LENGTH = struct.Struct(">Q")


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """What is read is many objects and no cycles; looking for some takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Worker:
    """The near end of such a process; a context manager that ends it."""

    def __init__(self, repo: Repository, rules: Rules) -> None:
        self._first = (repo, rules, os.getpid())
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        argv = [sys.executable, "-P", "-m", "smith.mine.worker"]
        self._child = process.start(argv, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._send(self._first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child is not None
        process.kill_group(self._child)
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def classify(self, chunk: Chunk) -> dict[bytes, Shape]:
        """The shapes of a chunk, by name. Raises :class:`Unavailable` where the machine ended the process."""
        self._send(chunk)
        assert self._child is not None and self._child.stdout is not None
        try:
            found: dict[bytes, Shape] = _receive(self._child.stdout)
        except (EOFError, ValueError) as error:
            raise _ended() from error
        return found

    def _send(self, value: Any) -> None:
        assert self._child is not None and self._child.stdin is not None
        try:
            _send(self._child.stdin, value)
        except (BrokenPipeError, ValueError) as error:
            raise _ended() from error


def _ended() -> Unavailable:
    return Unavailable(
        "a process that reads the history was ended", hint="is there memory left? start again: it goes on"
    )


def _send(stream: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def main() -> int:
    """Classify until there is nothing more to read; die with the parent, and leave Ctrl-C to it."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    # Nothing else may write there.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with contextlib.suppress(EOFError):
        repo, rules, parent = _receive(sys.stdin.buffer)
        if os.getppid() != parent:
            return 1  # it died before it could be watched
        with Blobs(repo, largest=rules.limits.largest_source) as blobs:
            classifier = Classifier(blobs, rules)
            while True:
                chunk = _receive(sys.stdin.buffer)
                _send(output, {key: classifier.shape(changes) for key, changes in chunk})
    return 0


if __name__ == "__main__":
    sys.exit(main())
