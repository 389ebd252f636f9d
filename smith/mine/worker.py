"""What runs in a process that only classifies. It imports little, since each process pays for it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence

from smith.git.history import Change
from smith.git.repository import Repository
from smith.mine.blobs import Blobs
from smith.mine.classify import Classifier, Shape
from smith.mine.rules import Rules

Changes = tuple[Change, ...]
Chunk = Sequence[tuple[bytes, Changes]]
"""Raw changes of pull requests, each with the name of its shape."""

_PR_SET_PDEATHSIG = 1
_classifier: Classifier | None = None


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


def start(repo: Repository, rules: Rules, parent: int) -> None:
    """Make this process ready; it dies with its parent, and leaves Ctrl-C to it."""
    global _classifier
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it died before it could be watched
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    _classifier = Classifier(Blobs(repo, largest=rules.limits.largest_source), rules)


def classify(chunk: Chunk) -> dict[bytes, Shape]:
    """The shapes of a chunk, by name."""
    assert _classifier is not None
    return {key: _classifier.shape(changes) for key, changes in chunk}
