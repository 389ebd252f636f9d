"""A receipt: what was found about one tree on one device."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from smith.records.base import Document, Oid, Reason, Record, TaskId
from smith.records.results import Failure
from smith.records.sensitivity import Sensitivity


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


class TimedCase(Record):
    """Speed-up of one workload case: ratio of baseline to reference time, with a bootstrap interval of 95 %."""

    case: str
    ratio: float
    low: float
    high: float


class Timing(Record):
    """A measured speed-up. A missing statement of method would void it, so all are required."""

    method: str
    device: str
    rounds: int
    """Interleaved pairs of fresh processes."""
    noise_low: float
    noise_high: float
    """95 % interval of baseline against itself."""
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
    base_failures: dict[str, Failure] = {}
    """How each fail-to-pass id fails on the base."""
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
    arms: tuple[Arm, ...] = ()
    repeats: int = 0
    environment: UsedEnvironment | None = None
    tried: tuple[str, ...] = ()
    """Environments that were tried before this one, and why they were left."""
    sandbox: str = ""
    not_proved: tuple[str, ...] = ()
    """What this receipt does not say, in words."""
    smith: str = ""
    """Version of smith."""
    seconds: float = 0.0

    def agrees_with(self, other: Receipt) -> bool:
        """Whether both found the same: verdict, reasons, tests and how they fail. Times and places may differ.

        One that knows more of planted faults than the other, or otherwise, does not agree; one that knows less does.
        """
        if self.planted is not None and self.planted.adds_to(other.planted):
            return False
        return all(
            (
                (self.task, self.tree, self.device, self.verdict)
                == (other.task, other.tree, other.device, other.verdict),
                [r.code for r in self.reasons] == [r.code for r in other.reasons],
                (self.fail_to_pass, self.pass_to_pass) == (other.fail_to_pass, other.pass_to_pass),
                (self.flaky, self.base_failures) == (other.flaky, other.base_failures),
            )
        )
