"""The shapes of many pull requests: from the cache, or classified by as many processes as there are cores."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from smith.errors import Unavailable
from smith.git.repository import Repository
from smith.mine.blobs import Blobs
from smith.mine.classify import Classifier, Shape
from smith.mine.rules import Rules
from smith.mine.store import Store
from smith.mine.worker import Changes, Chunk, classify, start, without_collection

Progress = Callable[[int], None]

CHUNK = 24
"""Pull requests that one process takes at a time. Neighbours share versions of files, which are then read once."""
WORTH_PROCESSES = 150
"""From so many on, starting processes takes less time than they save."""


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


def _one(repo: Repository, chunks: Sequence[Chunk], rules: Rules) -> Iterator[Mapping[bytes, Shape]]:
    with Blobs(repo, largest=rules.limits.largest_source) as blobs, without_collection():
        classifier = Classifier(blobs, rules)
        for chunk in chunks:
            yield {key: classifier.shape(changes) for key, changes in chunk}


def _many(repo: Repository, chunks: Sequence[Chunk], rules: Rules, workers: int) -> Iterator[Mapping[bytes, Shape]]:
    # Each process goes through its own part of the history from one end to the other: what it read stays of use. One
    # that is done takes from the far end of the longest part.
    parts = [deque(chunks[len(chunks) * n // workers : len(chunks) * (n + 1) // workers]) for n in range(workers)]
    # Not forked: this process may have threads, whose locks a fork would copy locked.
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        # Last of all: after an interrupt the process may end without its exit handlers, which would tell of leaks.
        stack.callback(gc.collect)
        pools = [
            stack.enter_context(
                ProcessPoolExecutor(1, mp_context=context, initializer=start, initargs=(repo, rules, os.getpid()))
            )
            for _ in parts
        ]
        pending: dict[Future[dict[bytes, Shape]], int] = {}

        def feed(worker: int) -> None:
            own = parts[worker]
            chunk = own.popleft() if own else (longest.pop() if (longest := max(parts, key=len)) else None)
            if chunk is not None:
                pending[pools[worker].submit(classify, chunk)] = worker

        try:
            for worker in range(workers):
                feed(worker)
                feed(worker)  # one ahead, so that no process waits
            while pending:
                # A time limit, so that Ctrl-C is seen.
                done, _ = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    feed(pending.pop(future))
                    yield future.result()
        except BrokenProcessPool as error:
            raise Unavailable(
                "a process that reads the history was ended", hint="is there memory left? again"
            ) from error
        finally:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)
            pools.clear()
            pending.clear()
