"""A receipt: what was found about one tree on one device."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from smith.records.base import Document, Oid, Reason, Record, TaskId
from smith.records.compiled import TargetReport
from smith.records.decision import BaseFails, NothingFails, PassRate
from smith.records.facts import FAILING, Facts
from smith.records.hardware import UsedHardware
from smith.records.results import Failure, Outcome
from smith.records.sanitizer import SanitizerReport
from smith.records.sensitivity import Sensitivity
from smith.records.workload import WorkloadNote


class Verdict(StrEnum):
    """Whether a task may be used on a device."""

    VALID = "valid"
    INVALID = "invalid"
    UNRESOLVABLE = "unresolvable"
    """This machine or device cannot tell."""


class ReasonCode(StrEnum):
    """Why a task is not valid. Each is documented in docs/validation.md."""

    NO_FAIL_TO_PASS = "no_fail_to_pass"
    HOST_CODE_ONLY = "host_code_only"
    REFERENCE_FAILS = "reference_fails"
    INVERTED = "inverted"
    UNSPECIFIED_INTERFACE = "unspecified_interface"
    UNSTABLE = "unstable"
    NO_TESTS = "no_tests"
    EXTRA_TEST = "extra_test"
    WRONG_PASSES = "wrong_passes"
    ALTERNATIVE_FAILS = "alternative_fails"
    NO_SPEEDUP = "no_speedup"
    NEEDS_DEVICE = "needs_device"
    NEEDS_WORKLOAD = "needs_workload"
    NEEDS_SOLUTION = "needs_solution"
    NOT_INTERPRETABLE = "not_interpretable"
    ENVIRONMENT = "environment"
    BUILD_FAILED = "build_failed"
    TIMEOUT = "timeout"
    NOISY = "noisy"


class UsedEnvironment(Record):
    """The layered environment that tests ran in. ``digest`` covers what is installed, not where."""

    name: str
    digest: str
    packages: dict[str, str] = {}
    """Distribution name to version, of the layer and of torch, triton, numpy and pytest below it."""
    python: str = ""

    def unlike(self, other: UsedEnvironment) -> str:
        """In one line, what is installed here otherwise than in ``other``; empty where nothing is."""
        if self.digest == other.digest:
            return ""
        mine, theirs = ({"python": used.python, **used.packages} for used in (self, other))
        names = sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
        return ", ".join(f"{n} {mine.get(n, 'absent')} and not {theirs.get(n, 'absent')}" for n in names)


class Arm(Record):
    """One run of one arm: ``nop`` or ``reference``, in a fresh place."""

    arm: str
    repeat: int
    passed: int
    failed: int
    other: int
    seconds: float
    seed: int | None = Field(default=None, exclude_if=lambda seed: seed is None)
    """Of Python's hashing, and of the generators of Python, numpy and torch where the tests do not seed them."""
    order: Literal["", "selected", "reversed", "shuffled"] = Field(default="", exclude_if=lambda order: not order)
    alone: int = Field(default=0, exclude_if=lambda alone: not alone)
    """How many of the tests were run in a process of their own."""

    @staticmethod
    def column(outcome: Outcome) -> Literal["passed", "failed", "other"]:
        """Which of the three counts an outcome is part of."""
        if outcome is Outcome.PASSED:
            return "passed"
        return "failed" if outcome in FAILING else "other"


class Answer(StrEnum):
    """What a measurement of speed came to."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNRESOLVED = "not resolvable here"


class TimedCase(Record):
    """Speed-up of one workload case: ratio of baseline to reference time, with a bootstrap interval of 95 %."""

    case: str
    ratio: float
    low: float
    high: float
    baseline_ns: tuple[float, ...] = Field(default=(), exclude_if=lambda times: not times)
    """Median nanoseconds a call of each leg of the baseline: two a block, in the order of the blocks."""
    candidate_ns: tuple[float, ...] = Field(default=(), exclude_if=lambda times: not times)
    """Of the candidate: one a block."""


class Timing(Record):
    """A measured speed-up. A missing statement of method would void it, so all are required."""

    method: str
    device: str
    rounds: int
    """Interleaved blocks of fresh processes."""
    void: int = Field(default=0, exclude_if=lambda blocks: not blocks)
    """Blocks that were left out, since something else disturbed them."""
    answer: Answer | None = Field(default=None, exclude_if=lambda answer: answer is None)
    """What the blocks say; None in receipts that were written before this was asked."""
    noise_low: float
    noise_high: float
    """95 % interval of the baseline against itself."""
    cases: tuple[TimedCase, ...]
    geomean: float
    low: float
    high: float
    worst: float


class ProbeResult(Record):
    """What trying one of the bundle's probes gave."""

    name: str
    kind: Literal["wrong", "alternative"]
    as_expected: bool
    """A wrong solution fails, an alternative one passes, in every run."""
    failing: tuple[str, ...] = ()
    """Ids that it fails, at most a few of them."""
    detail: str = ""
    """Why it is not as expected."""


class Receipt(Document):
    """What was found about one bundle tree on one device. Never edited, only replaced by another run."""

    task: TaskId
    tree: Oid
    device: str
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    """Quarantined: outcomes differed between repeats."""
    flaky_rates: dict[str, PassRate] = Field(default={}, exclude_if=lambda rates: not rates)
    """How often each of them passed, of how many runs, on each side."""
    base_failures: dict[str, Failure] = {}
    """How each fail-to-pass id fails on the base."""
    base_fails: BaseFails | None = Field(default=None, exclude_if=lambda how: how is None)
    """The most telling of these."""
    nothing_fails: NothingFails | None = Field(default=None, exclude_if=lambda why: why is None)
    """Why none does, where that is the reason."""
    launches: dict[str, int] = {}
    """Launches and nested calls of changed kernels while the fail-to-pass ids pass; for the variant ``optimize``, which
    has none, while the pass-to-pass ids do."""
    sensitivity: float | None = None
    """Share of the planted faults that the tests caught. None where it was not measured, or nothing counts."""
    planted: Sensitivity | None = Field(default=None, exclude_if=lambda planted: planted is None)
    """The planted faults and what became of each."""
    timing: Timing | None = None
    probes: tuple[ProbeResult, ...] = Field(default=(), exclude_if=lambda probes: not probes)
    """Wrong and alternative solutions of the bundle, as tried."""
    sanitizer: SanitizerReport | None = Field(default=None, exclude_if=lambda report: report is None)
    """What the sanitizer saw, where it was asked for; the verdict does not hang on it."""
    targets: dict[str, TargetReport] = Field(default={}, exclude_if=lambda targets: not targets)
    """By target, what compiling the captured launches gave, where it was asked for."""
    workload: WorkloadNote | None = Field(default=None, exclude_if=lambda note: note is None)
    """The recorded calls that every submission is held against besides, where they were asked for."""
    arms: tuple[Arm, ...] = ()
    repeats: int = 0
    environment: UsedEnvironment | None = None
    toolchain: dict[str, str] = Field(default={}, exclude_if=lambda compilers: not compilers)
    """Compilers that the recipe's build could find, by name, with their own word on their version."""
    hardware: UsedHardware | None = Field(default=None, exclude_if=lambda hardware: hardware is None)
    """The GPU that it was found on; other devices have none."""
    tried: tuple[str, ...] = ()
    """Environments that were tried before this one, and why they were left."""
    sandbox: str = ""
    not_proved: tuple[str, ...] = ()
    """What this receipt does not say, in words."""
    smith: str = ""
    """Version of smith."""
    seconds: float = 0.0
    facts: Facts | None = Field(default=None, exclude_if=lambda facts: facts is None)
    """What all of this was decided from; receipts of earlier versions have none, and cannot be checked again."""

    def agrees_with(self, other: Receipt) -> bool:
        """Whether both found the same: verdict, reasons, tests and how they fail. Times and places may differ, and what
        only one of them was asked for."""
        return all(
            (
                (self.task, self.tree, self.device, self.verdict)
                == (other.task, other.tree, other.device, other.verdict),
                [r.code for r in self.reasons] == [r.code for r in other.reasons],
                (self.fail_to_pass, self.pass_to_pass) == (other.fail_to_pass, other.pass_to_pass),
                (self.flaky, self.base_failures) == (other.flaky, other.base_failures),
            )
        )

    def adds_to(self, other: Receipt) -> bool:
        """Whether it holds of what is asked for besides (targets, the sanitizer, planted faults) what ``other``, which
        found the same, has not or has otherwise."""
        return (
            any(other.targets.get(target) != found for target, found in self.targets.items())
            or (
                self.sanitizer is not None
                and (other.sanitizer is None or not self.sanitizer.agrees_with(other.sanitizer))
            )
            or (self.planted is not None and self.planted.adds_to(other.planted))
            or (self.workload is not None and self.workload.adds_to(other.workload))
        )

    def with_what_it_lacks(self, other: Receipt) -> Receipt:
        """This receipt with what only ``other``, which found the same, was asked for."""
        planted = self if self.planted is not None else other
        return self.model_copy(
            update={
                "targets": {**other.targets, **self.targets},
                "sanitizer": self.sanitizer or other.sanitizer,
                "workload": self.workload or other.workload,
                "planted": planted.planted,
                "sensitivity": planted.sensitivity,
            }
        )
