"""What a validation has found so far, and small rules about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from smith.harness.environment import TestEnvironment
from smith.records.base import Reason
from smith.records.compiled import TargetReport
from smith.records.receipt import Arm, ProbeResult, ReasonCode, Timing, Verdict
from smith.records.results import Failure, Outcome, TestResult
from smith.validate.gate import Captured

OF_VERSIONS = frozenset(
    {ReasonCode.NO_FAIL_TO_PASS, ReasonCode.INVERTED, ReasonCode.NOT_INTERPRETABLE, ReasonCode.HOST_CODE_ONLY}
)
"""Reasons that other versions of libraries can bring about: a task is refused for one only when all were tried."""
FAILING = frozenset({Outcome.FAILED, Outcome.ERROR, Outcome.TIMEOUT, Outcome.CRASHED})
"""Outcomes on the base that show a fault. A skip, an id that was never announced or a kernel that the device cannot run
shows none."""


@dataclass
class Findings:
    """What is known so far about one bundle; becomes a receipt."""

    verdict: Verdict = Verdict.UNRESOLVABLE
    reasons: list[Reason] = field(default_factory=list)
    fail_to_pass: list[str] = field(default_factory=list)
    pass_to_pass: list[str] = field(default_factory=list)
    flaky: set[str] = field(default_factory=set)
    base_failures: dict[str, Failure] = field(default_factory=dict)
    base_results: dict[str, TestResult] = field(default_factory=dict)
    launches: dict[str, int] = field(default_factory=dict)
    timing: Timing | None = None
    probes: list[ProbeResult] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    targets: dict[str, TargetReport] = field(default_factory=dict)
    captured: dict[str, Captured] = field(default_factory=lambda: {"base": Captured(), "reference": Captured()})
    tried: list[str] = field(default_factory=list)
    environment: TestEnvironment | None = None

    def end(self, verdict: Verdict, code: ReasonCode | None = None, detail: str = "") -> Findings:
        """Set the verdict, with its reason where it is not ``valid``."""
        self.verdict = verdict
        if code is not None:
            self.reasons = [Reason(code=code.value, detail=detail)]
        return self

    def because(self, codes: Collection[ReasonCode]) -> bool:
        """Whether any of the reasons is one of ``codes``."""
        return any(reason.code in codes for reason in self.reasons)


def affordable(ids: Sequence[str], seconds: Mapping[str, float], budget_s: float, *, at_least: int = 3) -> list[str]:
    """The cheapest of ``ids`` that together take at most ``budget_s`` (but ``at_least`` so many), in their order.

    Every pass-to-pass id is run again in each repeat and in each grade, so what they cost together is bounded.
    """
    kept: set[str] = set()
    spent = 0.0
    for test_id in sorted(ids, key=lambda i: seconds[i]):
        spent += seconds[test_id]
        if spent > budget_s and len(kept) >= at_least:
            break
        kept.add(test_id)
    return [i for i in ids if i in kept]


def cut_off(ids: Sequence[str], results: Mapping[str, TestResult]) -> list[str]:
    """Those that no process came to, because an earlier test of their file ended it: each is run in one of its own.

    A kernel that traps would otherwise show in one test only.
    """
    crashed = {i.split("::", 1)[0] for i, result in results.items() if result.outcome is Outcome.CRASHED}
    missing = (i for i in ids if i not in results or results[i].outcome is Outcome.MISSING)
    return [i for i in missing if i.split("::", 1)[0] in crashed]


def ran(result: TestResult) -> bool:
    """Whether a process came to the test at all."""
    return result.outcome is not Outcome.MISSING
