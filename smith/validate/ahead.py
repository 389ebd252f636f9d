"""Legs begun before their turn, in slots that nothing else needs: the runs are the same, only sooner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, TypeVar

from smith.parallel import Slots

Job = TypeVar("Job")
Done = TypeVar("Done")


class Ahead(Generic[Job, Done]):
    """Does ``work`` on jobs that are compared by value: one that was foreseen and begun is not done again.

    Whoever uses it has a slot for what runs in its own thread; every job ahead takes one more of ``slots`` while it
    runs, and none is waited for. Without slots nothing is begun ahead. Leaving the context waits for what still runs,
    wanted or not, so that a sandbox never outlives its use.
    """

    def __init__(self, work: Callable[[Job], Done], slots: Slots | None) -> None:
        self._work, self._slots = work, slots
        self._begun: dict[Job, Future[Done]] = {}
        self._pool = ThreadPoolExecutor(max_workers=slots.count, thread_name_prefix="ahead") if slots else None

    def __enter__(self) -> Ahead[Job, Done]:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: BaseException | TracebackType | None) -> None:
        if self._pool is not None:
            # An interrupt ends the process and waits for nobody. None is cancelled: each has a slot to give back.
            self._pool.shutdown(wait=kind is None or issubclass(kind, Exception))

    def begin(self, jobs: Sequence[Job]) -> None:
        """Begin those of ``jobs``, which are likely to be asked for in this order, for which there is a slot.

        The first is left to the caller's own thread.
        """
        for job in jobs[1:]:
            if self._pool is None or self._slots is None:
                return
            if job not in self._begun and self._slots.take():
                self._begun[job] = self._pool.submit(self._beside, job, self._slots)

    def begun(self, job: Job) -> bool:
        """Whether this very job runs, or ran, ahead and was not asked for yet."""
        return job in self._begun

    def do(self, job: Job) -> Done:
        """What comes of ``job``, begun ahead or done now. Raises what ``work`` raises."""
        ahead = self._begun.pop(job, None)
        return self._work(job) if ahead is None else ahead.result()

    def _beside(self, job: Job, slots: Slots) -> Done:
        try:
            return self._work(job)
        finally:
            slots.give()
