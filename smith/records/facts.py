"""What a validation saw: compact enough that a receipt holds all of it, and whole enough to repeat its decision.

Nothing here is a judgement: outcomes as they came, what of the bundle the rules ask about, and what kept tests from
being run. The rules are in ``smith.verdict``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from smith.records.base import Reason, Record
from smith.records.candidate import Kind
from smith.records.results import Failure, Outcome, TestResult
from smith.records.task import Variant

FAILING = frozenset({Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT, Outcome.CRASHED})
"""Outcomes that can show a fault."""


class Seen(NamedTuple):
    """How one test ended once; in a receipt one word, ``passed`` or ``failed:assertion``."""

    outcome: Outcome
    failure: Failure | None = None

    @classmethod
    def of(cls, result: TestResult) -> Seen:
        """What counts of a result."""
        return cls(result.outcome, result.failure)

    @classmethod
    def parse(cls, word: str) -> Seen:
        """From a receipt's word. Raises :class:`ValueError` where it is none."""
        outcome, mark, failure = word.partition(":")
        return cls(Outcome(outcome), Failure(failure) if mark else None)

    def __str__(self) -> str:
        return f"{self.outcome.value}:{self.failure.value}" if self.failure else self.outcome.value

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def failed(self) -> bool:
        """Whether it shows a fault. A skip, an id that was never announced, a kernel that the device cannot run, a
        device that is missing or a report that broke show none."""
        return self.outcome in FAILING and not (self.failure is not None and self.failure.of_machine)


def _parse(value: Any) -> Any:
    return tuple(Seen.parse(word) for word in value.split()) if isinstance(value, str) else value


def _words(value: Iterable[Seen]) -> str:
    return " ".join(map(str, value))


Outcomes = Annotated[
    tuple[Seen, ...],
    BeforeValidator(_parse),
    PlainSerializer(_words, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^([a-z_]+(:[a-z_]+)?( [a-z_]+(:[a-z_]+)?)*)?$"}),
]
"""Outcomes of one test on one side, the first repeat first, as words with a space between."""


class TestFacts(Record):
    """What was seen of one test id. A side on which it was not run is left out."""

    __test__ = False  # not a test class, whatever pytest may think of the name

    reference: Outcomes = Field(default=(), exclude_if=lambda seen: not seen)
    nop: Outcomes = Field(default=(), exclude_if=lambda seen: not seen)
    seconds: float = 0.0
    """Of the first run on the reference."""
    launches: dict[str, int] = Field(default={}, exclude_if=lambda launches: not launches)
    """Launches and nested calls of the task's kernels in the first run on the reference, by kernel. Kept for every test
    that passes there and fails on the base, and for every test that passes on both where those count."""
    needs: str = Field(default="", exclude_if=lambda needs: not needs)
    """A name that only the reference has and no instruction gives, for want of which it fails on the base."""
    message: str = Field(default="", exclude_if=lambda message: not message)
    """The first line of what it said on the reference, where it did not pass; kept once for all that say the same."""

    def passes(self, side: str) -> tuple[int, int]:
        """How often it passed on ``reference`` or ``nop``, and of how many runs."""
        seen: tuple[Seen, ...] = self.reference if side == "reference" else self.nop
        return sum(one.passed for one in seen), len(seen)


class Asked(Record):
    """What of the bundle the rules ask about."""

    kind: Kind
    variant: Variant = Variant.FIX
    guards: tuple[str, ...] = Field(default=(), exclude_if=lambda files: not files)
    """Test files that only guard."""
    authored: tuple[str, ...] = Field(default=(), exclude_if=lambda files: not files)
    """Extra test files."""
    budget_s: float
    unsolved: bool = Field(default=False, exclude_if=lambda unsolved: not unsolved)
    """A port that nobody has a solution of."""
    own_kernels: bool = Field(default=False, exclude_if=lambda own: not own)
    """Only a test that launches the task's own kernels may be fail-to-pass."""
    counted: bool = Field(default=False, exclude_if=lambda counted: not counted)
    """Launches of the task's kernels are counted, though the device is not the interpreter, where they always are."""
    workloads: bool = Field(default=False, exclude_if=lambda workloads: not workloads)
    """There is something to time."""


class Facts(Record):
    """Everything that a verdict rests on, besides the device, the timing and the probes, which receipts have of old."""

    asked: Asked
    stopped: Reason | None = Field(default=None, exclude_if=lambda reason: reason is None)
    """What kept the tests from being run at all."""
    cannot_time: str = Field(default="", exclude_if=lambda detail: not detail)
    """Why nothing could be timed, where that was tried."""
    noisy: bool = Field(default=False, exclude_if=lambda noisy: not noisy)
    """Whether that is because something else used the machine."""
    tests: dict[str, TestFacts] = {}
    """By test id, in the order of the first run."""
