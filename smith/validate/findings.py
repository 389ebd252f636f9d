"""What a validation has found so far, and small rules about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from smith import __version__
from smith.harness.environment import TestEnvironment
from smith.records.base import Reason
from smith.records.compiled import TargetReport
from smith.records.decision import BaseFails, NothingFails, PassRate
from smith.records.facts import Facts
from smith.records.hardware import UsedHardware
from smith.records.receipt import Arm, ProbeResult, ReasonCode, Receipt, Timing, Verdict
from smith.records.results import Failure, Outcome, TestResult
from smith.records.sanitizer import SanitizerReport
from smith.validate.gate import Captured
from smith.verdict.decide import Decision, decide

OF_VERSIONS = frozenset(
    {ReasonCode.NO_FAIL_TO_PASS, ReasonCode.INVERTED, ReasonCode.NOT_INTERPRETABLE, ReasonCode.HOST_CODE_ONLY}
)
"""Reasons that other versions of libraries can bring about: a task is refused for one only when all were tried."""


class Identity(Protocol):
    """What a receipt is about."""

    @property
    def id(self) -> str: ...

    @property
    def tree(self) -> str: ...


@dataclass
class Findings:
    """What is known so far about one bundle; becomes a receipt."""

    verdict: Verdict = Verdict.UNRESOLVABLE
    reasons: list[Reason] = field(default_factory=list)
    fail_to_pass: list[str] = field(default_factory=list)
    pass_to_pass: list[str] = field(default_factory=list)
    flaky: set[str] = field(default_factory=set)
    flaky_rates: dict[str, PassRate] = field(default_factory=dict)
    base_failures: dict[str, Failure] = field(default_factory=dict)
    base_fails: BaseFails | None = None
    nothing_fails: NothingFails | None = None
    launches: dict[str, int] = field(default_factory=dict)
    timing: Timing | None = None
    probes: list[ProbeResult] = field(default_factory=list)
    arms: list[Arm] = field(default_factory=list)
    targets: dict[str, TargetReport] = field(default_factory=dict)
    captured: dict[str, Captured] = field(default_factory=lambda: {"base": Captured(), "reference": Captured()})
    tried: list[str] = field(default_factory=list)
    environment: TestEnvironment | None = None
    hardware: UsedHardware | None = None
    sanitizer: SanitizerReport | None = None
    facts: Facts | None = None

    def decide(self, facts: Facts, device: str) -> Decision:
        """Take on what follows from ``facts`` and from the timing and the probes so far."""
        decision = decide(facts, device, timing=self.timing, probes=self.probes)
        self.facts = facts
        self.verdict, self.reasons = decision.verdict, list(decision.reasons)
        self.fail_to_pass, self.pass_to_pass = list(decision.fail_to_pass), list(decision.pass_to_pass)
        self.flaky, self.flaky_rates = set(decision.flaky), decision.rates
        self.base_failures, self.base_fails = decision.base_failures, decision.base_fails
        self.nothing_fails, self.launches = decision.nothing_fails, decision.launches
        return decision

    def receipt(
        self,
        bundle: Identity,
        device: str,
        *,
        repeats: int,
        sandbox: str,
        toolchain: dict[str, str],
        not_proved: tuple[str, ...],
        seconds: float,
    ) -> Receipt:
        """The receipt for a bundle of this id and tree on ``device``."""
        return Receipt(
            task=bundle.id,
            tree=bundle.tree,
            device=device,
            verdict=self.verdict,
            reasons=tuple(self.reasons),
            fail_to_pass=tuple(self.fail_to_pass),
            pass_to_pass=tuple(self.pass_to_pass),
            flaky=tuple(sorted(self.flaky)),
            flaky_rates=self.flaky_rates,
            base_failures=self.base_failures,
            base_fails=self.base_fails,
            nothing_fails=self.nothing_fails,
            launches=self.launches,
            timing=self.timing,
            probes=tuple(self.probes),
            targets=self.targets,
            sanitizer=self.sanitizer,
            arms=tuple(self.arms),
            repeats=repeats,
            environment=self.environment.describe() if self.environment else None,
            toolchain=toolchain,
            hardware=self.hardware,
            tried=tuple(self.tried),
            sandbox=sandbox,
            not_proved=not_proved,
            smith=__version__,
            seconds=seconds,
            facts=self.facts,
        )

    def because(self, codes: Collection[ReasonCode]) -> bool:
        """Whether any of the reasons is one of ``codes``."""
        return any(reason.code in codes for reason in self.reasons)


def cut_off(ids: Sequence[str], results: Mapping[str, TestResult]) -> list[str]:
    """Those that no process came to, because an earlier test of their file ended it: each is run in one of its own.

    A kernel that traps would otherwise show in one test only.
    """
    crashed = {i.split("::", 1)[0] for i, result in results.items() if result.outcome is Outcome.CRASHED}
    missing = (i for i in ids if i not in results or results[i].outcome is Outcome.MISSING)
    return [i for i in missing if i.split("::", 1)[0] in crashed]
