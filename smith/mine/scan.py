"""The shapes of many pull requests: from the cache, or classified by as many processes as there are cores."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from smith.git.repository import Repository
from smith.mine.blobs import Blobs
from smith.mine.classify import Classifier, Shape
from smith.mine.rules import Rules
from smith.mine.store import Store
from smith.mine.worker import Changes, Chunk, Worker, without_collection

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
    lock = threading.Lock()
    results: queue.SimpleQueue[Mapping[bytes, Shape] | BaseException | None] = queue.SimpleQueue()

    def take(worker: int) -> Chunk | None:
        with lock:
            if parts[worker]:
                return parts[worker].popleft()
            longest = max(parts, key=len)
            return longest.pop() if longest else None

    def drive(number: int, worker: Worker) -> None:
        try:
            while (chunk := take(number)) is not None:
                results.put(worker.classify(chunk))
            results.put(None)
        except BaseException as error:
            results.put(error)

    with contextlib.ExitStack() as stack:
        crew = [stack.enter_context(Worker(repo, rules)) for _ in range(workers)]
        for number, worker in enumerate(crew):
            threading.Thread(target=drive, args=(number, worker), name="smith-scan", daemon=True).start()
        busy = workers
        while busy:
            try:
                found = results.get(timeout=0.5)  # a time limit, so that Ctrl-C is seen
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            if found is None:
                busy -= 1
            else:
                yield found
