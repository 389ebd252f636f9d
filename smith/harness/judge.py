"""From the records of one run to typed results: announced, started, finished and expected ids must agree."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from smith.harness.channel import (
    Announced,
    AnyRecord,
    Captured,
    Collected,
    End,
    Hello,
    Recorded,
    Result,
    Start,
    Uncollected,
)
from smith.records.compiled import Launch
from smith.records.results import Failure, Outcome, TestResult
from smith.records.workload import RecordedCall

INTERNAL_ERROR, USAGE_ERROR = 3, 4
"""pytest's exit statuses for a broken run and for one that could not begin."""
TRAPS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP})


@dataclass
class Account:
    """What the records of one process add up to. ``fault`` is set by the first that cannot follow the ones before."""

    expected: frozenset[str] = frozenset()
    greeted: bool = False
    collected: list[Collected] = field(default_factory=list)
    uncollected: list[Uncollected] = field(default_factory=list)
    announced: dict[str, None] = field(default_factory=dict)
    open: str | None = None
    results: dict[str, TestResult] = field(default_factory=dict)
    captured: list[Launch] = field(default_factory=list)
    recorded: list[RecordedCall] = field(default_factory=list)
    end: End | None = None
    fault: str | None = None
    death: Failure | None = None
    """Why the process ended before its closing record, as far as its status tells; see :func:`death_of`."""

    @property
    def complete(self) -> bool:
        """The closing record came, from a pytest that did not break; nothing is open or was out of order."""
        closed = self.end is not None and self.end.status != INTERNAL_ERROR
        return closed and self.fault is None and self.open is None

    def take(self, records: Iterable[AnyRecord]) -> None:
        """Go through the records until one is out of order."""
        for record in records:
            self.fault = self._next(record)
            if self.fault is not None:
                return

    def _next(self, record: AnyRecord) -> str | None:
        if isinstance(record, Hello) is self.greeted:
            return "greeted twice" if self.greeted else "no greeting"
        if self.end is not None:
            return "a record after the last"
        match record:
            case Hello():
                self.greeted = True
            case Collected():
                self.collected.append(record)
            case Uncollected():
                self.uncollected.append(record)
            case Announced():
                if record.id in self.announced or record.id not in self.expected:
                    return f"{shorten(record.id)} was not to be announced"
                self.announced[record.id] = None
            case Start():
                if self.open is not None or record.id in self.results or record.id not in self.announced:
                    return f"{shorten(record.id)} was not to be started"
                self.open = record.id
            case Result():
                return self._finish(record)
            case Captured():
                self.captured.append(Launch(**record.model_dump(exclude={"kind"})))
            case Recorded():
                self.recorded.append(RecordedCall(**record.model_dump(exclude={"kind"})))
            case End():
                self.end = record
            case _:
                return "a record that is not for this channel"
        return None

    def _finish(self, record: Result) -> str | None:
        if record.id != self.open:
            return f"{shorten(record.id)} finished without having been started"
        self.open = None
        self.results[record.id] = TestResult(
            id=record.id,
            outcome=record.outcome,
            seconds=record.seconds,
            failure=record.failure,
            message=record.message[:2000],
            launches=record.launches,
            findings=record.findings,
        )
        return None

    def verdict(self, expected: Sequence[str], timed_out: bool) -> list[TestResult]:
        """One result for each expected id, whatever happened to it."""
        return [self.results.get(name) or self._unfinished(name, timed_out) for name in expected]

    def _unfinished(self, name: str, timed_out: bool) -> TestResult:
        if name == self.open:
            if timed_out:
                return TestResult(id=name, outcome=Outcome.TIMEOUT, failure=Failure.TIMEOUT)
            return TestResult(id=name, outcome=Outcome.CRASHED, failure=self.death or Failure.OTHER)
        for part in self.uncollected:
            if name not in self.announced and _covers(part.node, name):
                return _from_collection(name, part)
        # In a run that was whole it was not reached in time or does not exist; otherwise nobody knows.
        return TestResult(id=name, outcome=Outcome.MISSING, failure=None if self.complete else self._broken())

    def _broken(self) -> Failure:
        return Failure.OUT_OF_MEMORY if self.death is Failure.OUT_OF_MEMORY else Failure.HARNESS


def _covers(node: str, name: str) -> bool:
    return node in ("", ".", name) or name.startswith((f"{node}::", f"{node}/"))


def _from_collection(name: str, part: Uncollected) -> TestResult:
    if part.skipped:
        return TestResult(id=name, outcome=Outcome.SKIPPED, message=part.message)
    outcome = Outcome.NOT_INTERPRETABLE if part.refused else Outcome.ERROR
    return TestResult(id=name, outcome=outcome, failure=part.failure, message=part.message)


def death_of(status: int, breach: str | None) -> Failure | None:
    """Why a process ended that should not have: ``status`` is negative for a signal, ``breach`` a limit of the sandbox.

    A trap (an address that is not mapped, a bad instruction, an abort of the C library) is native code gone wrong. A
    kill that nobody of smith sent is the kernel's, which ends processes so where memory runs out, and a test may send
    it to itself: only the sandbox's own limit is taken for memory.
    """
    if breach is not None:
        return Failure.OUT_OF_MEMORY if breach == "memory" else Failure.HARNESS
    return Failure.KERNEL_ERROR if -status in TRAPS else Failure.OTHER


def shorten(text: str) -> str:
    """A name that came from inside, made fit for a note of one line."""
    return ascii(text[:80])
