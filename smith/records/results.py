"""What running tests gives, one typed outcome an id."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from smith.records.base import Record
from smith.records.compiled import Launch
from smith.records.memory import MemoryFinding
from smith.records.workload import LeftOut, RecordedCall


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
    """How a test failed, from the most to the least telling about the kernel: this order is the rank."""

    ASSERTION = "assertion"
    """A result was compared and found wrong."""
    KERNEL_ERROR = "kernel_error"
    """The kernel broke while it ran: an error of the interpreter or the device, or a trap of native code."""
    OTHER = "other"
    """The code under test raised something else."""
    INTERFACE = "interface"
    """TypeError, AttributeError or NameError of an interface that is not there."""
    IMPORT = "import"
    COLLECTION = "collection"
    """The test's file could not be imported, whatever it raised."""
    COMPILE = "compile"
    """A compiler refused the kernel."""
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    DEVICE_MISSING = "device_missing"
    HARNESS = "harness"
    """pytest or the report broke: nothing is known about the test."""

    @property
    def rank(self) -> int:
        """1 for the most telling."""
        return list(Failure).index(self) + 1

    @property
    def weak(self) -> bool:
        """Whether a test that fails so has compared nothing: something is missing, which is not to be wrong."""
        return self.rank > Failure.OTHER.rank

    @property
    def of_machine(self) -> bool:
        """Whether it says something about the machine and nothing about the code."""
        return self in (Failure.DEVICE_MISSING, Failure.HARNESS)


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
    findings: tuple[MemoryFinding, ...] = Field(default=(), exclude_if=lambda findings: not findings)
    """What the sanitizer saw, in a run that asked for it."""


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
    recorded: tuple[RecordedCall, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    """Distinct calls into the package, where they were asked for."""
    unrecorded: tuple[LeftOut, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    """Calls that cannot be made again."""
    altered: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """What the code under test has changed of the test framework and of what it compares with."""

    def by_id(self) -> dict[str, TestResult]:
        """Results by id."""
        return {r.id: r for r in self.results}
