"""The shapes of many pull requests: from the cache, or classified by as many processes as there are cores."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

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


class Crew:
    """The processes that classify; a context manager that ends them. ``jobs``: how many, else one a core."""

    def __init__(self, repo: Repository, rules: Rules, jobs: int | None = None) -> None:
        self.repo = repo
        self.rules = rules
        self._jobs = jobs or available_cores()
        self._workers: list[Worker] = []
        self._parts: list[deque[Chunk]] = []
        self._busy = 0
        self._lock = threading.Lock()
        self._results: queue.SimpleQueue[Mapping[bytes, Shape] | BaseException | None] = queue.SimpleQueue()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def call(self, changes: int) -> None:
        """Start the processes if so many changes are worth it: each takes half a second until it begins."""
        if changes >= WORTH_PROCESSES and self._jobs > 1:
            while len(self._workers) < min(self._jobs, -(-changes // CHUNK)):
                self._workers.append(self._stack.enter_context(Worker(self.repo, self.rules)))

    def begin(self, chunks: Sequence[Chunk]) -> bool:
        """Let the processes classify; False, and nothing begun, where none is called. Not while they do already."""
        if not self._workers:
            return False
        # Each goes through its own part of the history from one end to the other: what it read stays of use.
        share = len(chunks) / len(self._workers)
        numbers = range(len(self._workers))
        self._parts = [deque(chunks[round(share * n) : round(share * (n + 1))]) for n in numbers]
        self._busy = len(self._workers)
        for number in numbers:
            threading.Thread(target=self._drive, args=(number,), name="smith-scan", daemon=True).start()
        return True

    def results(self) -> Iterator[Mapping[bytes, Shape]]:
        """What the processes find, until all that was begun is done."""
        while self._busy:
            try:
                found = self._results.get(timeout=0.5)  # a time limit, so that Ctrl-C is seen
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                raise found
            if found is None:
                self._busy -= 1
            else:
                yield found

    def _drive(self, number: int) -> None:
        try:
            while (chunk := self._take(number)) is not None:
                self._results.put(self._workers[number].classify(chunk))
            self._results.put(None)
        except BaseException as error:
            self._results.put(error)

    def _take(self, number: int) -> Chunk | None:
        with self._lock:
            if self._parts[number]:
                return self._parts[number].popleft()
            # One that is done takes from the far end of the longest part.
            longest = max(self._parts, key=len)
            return longest.pop() if longest else None


def foresee(likely: Sequence[Changes], store: Store, crew: Crew) -> None:
    """Begin with changes whose shapes are likely to be asked for, in the background, if there are enough of them."""
    chunks = _chunks([(store.key(one), one) for one in likely], store)
    crew.call(sum(map(len, chunks)))
    crew.begin(chunks)


def shapes(
    changes: Sequence[Changes], store: Store, crew: Crew, *, progress: Progress = lambda done: None
) -> list[Shape]:
    """The shape of each of ``changes``, in order. ``progress`` is told how many more are done.

    What is classified is remembered at once, so that an interrupted scan goes on where it was. Raises
    :class:`Unavailable` where the machine ends a process (for want of memory).
    """
    named = [(store.key(one), one) for one in changes]
    wanted = {key for key, _ in named}
    known = store.shapes(wanted)
    progress(len(known))

    def keep(some: Mapping[bytes, Shape]) -> None:
        # What could not be read may be here another time.
        store.remember({key: shape for key, shape in some.items() if not shape.unread})
        done = len(known)
        known.update((key, shape) for key, shape in some.items() if key in wanted)
        progress(len(known) - done)

    for some in crew.results():
        keep(some)
    chunks = _chunks([(key, one) for key, one in named if key not in known])
    crew.call(sum(map(len, chunks)))
    for some in crew.results() if crew.begin(chunks) else _one(crew.repo, chunks, crew.rules):
        keep(some)
    return [known[key] for key, _ in named]


def _chunks(named: Sequence[tuple[bytes, Changes]], store: Store | None = None) -> list[Chunk]:
    """``named`` without repetitions, and without what is in ``store``, in parts for one process at a time."""
    known = store.shapes([key for key, _ in named]) if store else {}
    missing = list({key: one for key, one in named if key not in known}.items())
    return [missing[start : start + CHUNK] for start in range(0, len(missing), CHUNK)]


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _one(repo: Repository, chunks: Sequence[Chunk], rules: Rules) -> Iterator[Mapping[bytes, Shape]]:
    with Blobs(repo, largest=rules.limits.largest_source) as blobs, without_collection():
        classifier = Classifier(blobs, rules)
        for chunk in chunks:
            yield {key: classifier.shape(changes) for key, changes in chunk}
