"""Work in threads that an interrupt ends at once: nothing waits for what is still running."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def each(work: Callable[[T], R], items: Iterable[T], jobs: int) -> Iterator[tuple[T, R]]:
    """Do ``work`` on ``items``, ``jobs`` at a time, and yield item and result as they come.

    The first error, or an interrupt, is raised at once; what has not started is not started any more, and what is
    running is left to the end of the process (see :func:`smith.cli.main.main`).
    """
    pool = ThreadPoolExecutor(max_workers=max(1, jobs))
    try:
        pending: dict[Future[R], T] = {pool.submit(work, item): item for item in items}
        while pending:
            # A time limit, so that Ctrl-C is seen while every thread waits for a child.
            done, _ = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


class Slots:
    """At most ``count`` things at a time, over all threads that share it."""

    def __init__(self, count: int) -> None:
        self.count = max(1, count)
        self._free = threading.Semaphore(self.count)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Waits for a slot and holds it."""
        with self._free:
            yield

    def take(self) -> bool:
        """Take a slot where one is free; whether it was. Whoever took it gives it back."""
        return self._free.acquire(blocking=False)

    def give(self) -> None:
        """Give back what :meth:`take` took."""
        self._free.release()
