"""The shapes of many pull requests: from the cache, or classified by as many processes as there are cores."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from smith.errors import Unavailable
from smith.git.history import Change
from smith.git.repository import Repository
from smith.mine.blobs import Blobs
from smith.mine.classify import Classifier, Shape
from smith.mine.rules import Rules
from smith.mine.store import Store

Changes = tuple[Change, ...]
Progress = Callable[[int], None]

CHUNK = 24
"""Pull requests that one process takes at a time. Neighbours share versions of files, which are then read once."""
WORTH_PROCESSES = 150
"""From so many on, starting processes takes less time than they save."""
_PR_SET_PDEATHSIG = 1


def shapes(
    repo: Repository,
    changes: Sequence[Changes],
    rules: Rules,
    store: Store,
    *,
    jobs: int | None = None,
    progress: Progress = lambda done: None,
) -> list[Shape]:
    """The shape of each of ``changes``, in order. ``progress`` is told how many more are done.

    What is classified is remembered at once, so that an interrupted scan goes on where it was. Raises
    :class:`Unavailable` where the machine ends a process (for want of memory).
    """
    keys = [store.key(one) for one in changes]
    known = store.shapes(keys)
    progress(len([key for key in keys if key in known]))
    missing = list({key: one for key, one in zip(keys, changes, strict=True) if key not in known}.items())
    chunks = [missing[start : start + CHUNK] for start in range(0, len(missing), CHUNK)]
    workers = min(jobs or available_cores(), len(chunks)) if len(missing) >= WORTH_PROCESSES else 1
    found = _many(repo, chunks, rules, workers) if workers > 1 else _one(repo, chunks, rules)
    for some in found:
        # What could not be read may be here another time.
        store.remember({key: shape for key, shape in some.items() if not shape.unread})
        known.update(some)
        progress(len(some))
    return [known[key] for key in keys]


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_Chunk = Sequence[tuple[bytes, Changes]]


def _one(repo: Repository, chunks: Sequence[_Chunk], rules: Rules) -> Iterator[Mapping[bytes, Shape]]:
    with Blobs(repo, largest=rules.limits.largest_source) as blobs:
        classifier = Classifier(blobs, rules)
        for chunk in chunks:
            yield {key: classifier.shape(changes) for key, changes in chunk}


def _many(repo: Repository, chunks: Sequence[_Chunk], rules: Rules, workers: int) -> Iterator[Mapping[bytes, Shape]]:
    # Each process goes through its own part of the history from one end to the other: what it read stays of use.
    parts = [chunks[len(chunks) * n // workers : len(chunks) * (n + 1) // workers] for n in range(workers)]
    # Not forked: this process may have threads, whose locks a fork would copy locked.
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        pools = [
            stack.enter_context(
                ProcessPoolExecutor(1, mp_context=context, initializer=_start, initargs=(repo, rules, os.getpid()))
            )
            for _ in parts
        ]
        pending = {pool.submit(_classify, chunk) for pool, part in zip(pools, parts, strict=True) for chunk in part}
        try:
            while pending:
                # A time limit, so that Ctrl-C is seen.
                done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BrokenProcessPool as error:
            raise Unavailable(
                "a process that reads the history was ended", hint="is there memory left? again"
            ) from error
        finally:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)


_classifier: Classifier | None = None


def _start(repo: Repository, rules: Rules, parent: int) -> None:
    """Make a worker process ready; it dies with its parent, and leaves Ctrl-C to it."""
    global _classifier
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it died before it could be watched
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # what is read is many objects and no cycles; looking for some takes a tenth of the time
    _classifier = Classifier(Blobs(repo, largest=rules.limits.largest_source), rules)


def _classify(chunk: _Chunk) -> dict[bytes, Shape]:
    assert _classifier is not None
    return {key: _classifier.shape(changes) for key, changes in chunk}
