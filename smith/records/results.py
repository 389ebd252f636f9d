"""What running tests gives, one typed outcome an id."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from smith.records.base import Record
from smith.records.compiled import Launch


class Outcome(StrEnum):
    """How one test id ended. Only ``passed`` is a pass."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Set-up, tear-down or collection failed."""
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    TIMEOUT = "timeout"
    NOT_INTERPRETABLE = "not_interpretable"
    """The device cannot run this kernel; says nothing about its correctness."""
    CRASHED = "crashed"
    """The process ended while the test was running."""
    MISSING = "missing"
    """Expected, never announced."""


class Failure(StrEnum):
    """How a test failed, from the most to the least telling about the kernel."""

    ASSERTION = "assertion"
    KERNEL_ERROR = "kernel_error"
    INTERFACE = "interface"
    """TypeError, AttributeError or NameError of an interface that is not there."""
    IMPORT = "import"
    COLLECTION = "collection"
    OTHER = "other"


class TestResult(Record):
    """One id. ``launches`` counts grid launches and nested calls by kernel (``path::qualified.name``)."""

    __test__ = False  # not a test class, whatever pytest may think of the name

    id: str
    outcome: Outcome
    seconds: float = 0.0
    failure: Failure | None = None
    message: str = ""
    """The first lines of the error, cut; for people, never for a decision."""
    launches: dict[str, int] = {}


class TestRun(Record):
    """One run of a set of ids. ``ending`` is how the process ended, for people."""

    __test__ = False

    results: tuple[TestResult, ...]
    collected: tuple[str, ...] = ()
    ending: str = "ok"
    complete: bool = True
    """Whether the closing record came: announced, finished and expected ids agree."""
    seconds: float = 0.0
    note: str = ""
    captured: tuple[Launch, ...] = Field(default=(), exclude_if=lambda launches: not launches)
    """Distinct launches of kernels, where they were asked for."""
    uncaptured: int = Field(default=0, exclude_if=lambda count: not count)
    """Launches that were too many or too large to be told."""

    def by_id(self) -> dict[str, TestResult]:
        """Results by id."""
        return {r.id: r for r in self.results}
