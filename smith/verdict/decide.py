"""From recorded facts to a verdict with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from smith.records.base import Reason
from smith.records.candidate import Kind
from smith.records.decision import BaseFails, NothingFails, PassRate
from smith.records.facts import Facts
from smith.records.receipt import Answer, ProbeResult, ReasonCode, Timing, Verdict
from smith.records.results import Failure, Outcome
from smith.records.task import Variant
from smith.verdict import authored
from smith.verdict.sorting import Sorted, by_speed, may_count, rates, sort

_OF_BUNDLE = frozenset({ReasonCode.NO_TESTS.value, ReasonCode.EXTRA_TEST.value})
"""What stops a validation and is the bundle's fault; everything else that does is the machine's."""


@dataclass(frozen=True)
class Decision:
    """What the facts say."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    rates: dict[str, PassRate] = field(default_factory=dict)
    base_failures: dict[str, Failure] = field(default_factory=dict)
    base_fails: BaseFails | None = None
    nothing_fails: NothingFails | None = None
    launches: dict[str, int] = field(default_factory=dict)
    wants_timing: bool = False
    """The verdict hangs on a measurement that has not been taken."""

    def because(self, verdict: Verdict, code: ReasonCode, detail: str) -> Decision:
        """The same findings with this verdict and reason."""
        return replace(self, verdict=verdict, reasons=(Reason(code=code.value, detail=detail),))


def decide(facts: Facts, device: str, *, timing: Timing | None = None, probes: Sequence[ProbeResult] = ()) -> Decision:
    """The verdict on ``device``. The same facts give the same decision, whoever asks, and whenever."""
    if facts.stopped is not None:
        verdict = Verdict.INVALID if facts.stopped.code in _OF_BUNDLE else Verdict.UNRESOLVABLE
        return Decision(verdict, (facts.stopped,))
    found = sort(facts)
    decision = _findings(facts, found)
    bad = authored.faulty(facts.asked.authored, facts.tests, found.flaky)
    if bad:
        return decision.because(Verdict.INVALID, ReasonCode.EXTRA_TEST, bad)
    if not any(t.reference and t.reference[0].passed for t in facts.tests.values()):
        return _nothing_passes(facts, decision)
    judged = _Rules(facts, found, device, timing).judge(decision)
    if judged.verdict is Verdict.VALID:
        for probe in probes:
            if not probe.as_expected:
                code = ReasonCode.WRONG_PASSES if probe.kind == "wrong" else ReasonCode.ALTERNATIVE_FAILS
                return judged.because(Verdict.INVALID, code, f"{probe.name}: {probe.detail}")
    return judged


def _findings(facts: Facts, found: Sorted) -> Decision:
    """Everything but verdict and reasons."""
    failures = {i: facts.tests[i].nop[0].failure or Failure.OTHER for i in found.fail_to_pass}
    best = min(failures.values(), key=lambda f: f.rank, default=None)
    counted = found.fail_to_pass or (found.pass_to_pass if facts.asked.variant is Variant.OPTIMIZE else ())
    return Decision(
        Verdict.VALID,
        fail_to_pass=found.fail_to_pass,
        pass_to_pass=found.pass_to_pass,
        flaky=found.flaky,
        rates=rates(facts, found.flaky),
        base_failures=failures,
        base_fails=BaseFails(failure=best, rank=best.rank, weak=best.weak) if best else None,
        launches=_launches(facts, counted),
    )


def _launches(facts: Facts, ids: Sequence[str]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for test_id in ids:
        total.update(facts.tests[test_id].launches)
    return dict(sorted(total.items()))


_WANTS = frozenset({Failure.OUT_OF_MEMORY, Failure.DEVICE_MISSING, Failure.HARNESS})
"""What a machine that lacks something does to a test that may be right."""


def _nothing_passes(facts: Facts, decision: Decision) -> Decision:
    """The reference passes no test. Where one shows a fault the bundle is wrong; else say what kept them from running,
    in the words that help most."""
    first = [t.reference[0] for t in facts.tests.values() if t.reference]
    message = next((t.message for t in facts.tests.values() if t.message), "")
    outcomes = Counter(seen.outcome for seen in first)
    failures = {seen.failure for seen in first}
    if any(seen.failed and seen.outcome is not Outcome.TIMEOUT and seen.failure not in _WANTS for seen in first):
        detail = f"no test passes on the reference: {message}"
        return decision.because(Verdict.INVALID, ReasonCode.REFERENCE_FAILS, detail)
    if outcomes[Outcome.NOT_INTERPRETABLE]:
        return decision.because(Verdict.UNRESOLVABLE, ReasonCode.NOT_INTERPRETABLE, message)
    if Failure.DEVICE_MISSING in failures:
        detail = f"the tests ask for a device that is not here: {message}"
        return decision.because(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_DEVICE, detail)
    if Failure.OUT_OF_MEMORY in failures:
        detail = f"the tests need more memory than there is here: {message}"
        return decision.because(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_DEVICE, detail)
    if Failure.HARNESS in failures:
        detail = f"pytest broke before any test ended: {message}"
        return decision.because(Verdict.UNRESOLVABLE, ReasonCode.ENVIRONMENT, detail)
    late = outcomes[Outcome.TIMEOUT] + outcomes[Outcome.MISSING]
    if late and outcomes[Outcome.SKIPPED]:
        detail = (
            f"{outcomes[Outcome.SKIPPED]} of {len(first)} tests are skipped here, "
            f"and {late} do not end in the time allowed: {message}"
        )
        return decision.because(Verdict.UNRESOLVABLE, ReasonCode.TIMEOUT, detail)
    if late:
        detail = "no test ends within its time limit here"
        return decision.because(Verdict.UNRESOLVABLE, ReasonCode.TIMEOUT, detail)
    if outcomes[Outcome.SKIPPED]:
        detail = f"every test is skipped here: {message}"
        return decision.because(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_DEVICE, detail)
    detail = f"no test passes on the reference: {message}"
    return decision.because(Verdict.INVALID, ReasonCode.REFERENCE_FAILS, detail)


@dataclass(frozen=True)
class _Rules:
    """The rules where something passes on the reference."""

    facts: Facts
    found: Sorted
    device: str
    timing: Timing | None

    @property
    def counted(self) -> bool:
        """Whether launches of the task's kernels are counted on this device."""
        return self.facts.asked.counted or self.interpreter

    @property
    def interpreter(self) -> bool:
        """Whether kernels are interpreted."""
        return self.device.startswith("interpreter")

    def judge(self, decision: Decision) -> Decision:
        if self.found.fail_to_pass:
            return self._by_tests(decision)
        if by_speed(self.facts.asked):
            return self._by_speed(decision)
        return self._by_nothing(decision)

    def _by_tests(self, decision: Decision) -> Decision:
        if self.facts.asked.unsolved:
            detail = "the tests tell, and no port is known that passes them: freeze it again with --solution"
            return decision.because(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_SOLUTION, detail)
        if self.counted and not decision.launches:
            detail = "no fail-to-pass test launches a changed kernel"
            return decision.because(Verdict.INVALID, ReasonCode.HOST_CODE_ONLY, detail)
        for test_id in self.found.fail_to_pass:
            if name := self.facts.tests[test_id].needs:
                detail = f"{test_id} needs {name}, which the instruction does not name"
                return decision.because(Verdict.INVALID, ReasonCode.UNSPECIFIED_INTERFACE, detail)
        return decision

    def _by_nothing(self, decision: Decision) -> Decision:
        tests = self.facts.tests
        telling = [i for i in self.found.flaky if may_count(self.facts.asked, i, tests[i])]
        if telling:
            detail = f"every telling test is unstable: {', '.join(telling[:3])}"
            return decision.because(Verdict.INVALID, ReasonCode.UNSTABLE, detail)
        if self.found.inverted:
            detail = f"passes on the base, fails on the reference: {self.found.inverted[0]}"
            return decision.because(Verdict.INVALID, ReasonCode.INVERTED, detail)
        first = {i: t.reference[0] for i, t in tests.items() if t.reference}
        unable = [i for i, seen in first.items() if seen.outcome is Outcome.NOT_INTERPRETABLE]
        if unable:
            detail = next((tests[i].message for i in unable if tests[i].message), "")
            return decision.because(Verdict.UNRESOLVABLE, ReasonCode.NOT_INTERPRETABLE, detail)
        unseen = [
            i
            for i, seen in first.items()
            if seen.outcome is Outcome.MISSING and may_count(self.facts.asked, i, tests[i])
        ]
        if unseen:
            detail = (
                f"none of the tests that ran fails on the base, and {len(unseen)} were not reached in the time allowed"
            )
            return decision.because(Verdict.UNRESOLVABLE, ReasonCode.TIMEOUT, detail)
        why, words = self._silence()
        detail = f"every test that passes on the reference passes on the base too; {why.value}: {words}"
        decided = decision.because(Verdict.INVALID, ReasonCode.NO_FAIL_TO_PASS, detail)
        return replace(decided, nothing_fails=why)

    def _silence(self) -> tuple[NothingFails, str]:
        """Why nothing fails on the base, in one word and in several."""
        passing = [t for t in self.facts.tests.values() if t.reference and t.reference[0].passed]
        launching = [t for t in passing if t.launches]
        if self.counted and not launching:
            return NothingFails.NOT_LAUNCHED, "none of them launches a changed kernel"
        if self.facts.asked.kind is not Kind.FIX:
            return NothingFails.NOT_A_FIX, f"a change of kind {self.facts.asked.kind.value} need not make any fail"
        if not self.counted:
            return NothingFails.NOT_COUNTED, f"whether they reach the change is not known on {self.device}"
        words = f"{len(launching)} of them launch changed kernels, so the fault does not show on this device"
        return NothingFails.INVISIBLE_HERE, words

    def _by_speed(self, decision: Decision) -> Decision:
        """A performance task without failing tests: its reference must be measurably faster."""
        held = "nothing fails on the base, and "
        guards = len(self.found.pass_to_pass)
        if self.facts.asked.variant is Variant.OPTIMIZE:
            if not guards:
                return decision.because(Verdict.INVALID, ReasonCode.NO_TESTS, "no stable test guards the results")
            if self.counted and not decision.launches:
                detail = "no test that passes on base and reference launches a changed kernel"
                return decision.because(Verdict.INVALID, ReasonCode.HOST_CODE_ONLY, detail)
            held = f"correctness held ({guards} tests pass on base and reference), and "
        if self.interpreter:
            detail = f"{held}the interpreter measures no speed"
            return decision.because(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_DEVICE, detail)
        if not self.facts.asked.workloads:
            detail = f"{held}the recipe names no workload to time, and none was recorded"
            return decision.because(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_WORKLOAD, detail)
        if not guards:
            return decision.because(Verdict.INVALID, ReasonCode.NO_TESTS, "no stable test guards the results")
        if self.facts.cannot_time:
            code = ReasonCode.NOISY if self.facts.noisy else ReasonCode.NEEDS_WORKLOAD
            return decision.because(Verdict.UNRESOLVABLE, code, self.facts.cannot_time)
        if self.timing is None:
            decided = decision.because(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_WORKLOAD, "nothing was timed")
            return replace(decided, wants_timing=True)
        return _by_timing(decision, self.timing)


def _by_timing(decision: Decision, timing: Timing) -> Decision:
    figures = f"{timing.geomean:.2f}x, interval {timing.low:.2f} to {timing.high:.2f}"
    if timing.answer is Answer.FASTER:
        return decision
    if timing.answer is Answer.UNRESOLVED:
        detail = f"{figures}; noise {timing.noise_low:.2f} to {timing.noise_high:.2f}, {timing.void} blocks void"
        return decision.because(Verdict.UNRESOLVABLE, ReasonCode.NOISY, detail)
    return decision.because(Verdict.INVALID, ReasonCode.NO_SPEEDUP, f"{timing.answer}: {figures}")
