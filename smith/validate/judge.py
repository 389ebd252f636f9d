"""From outcomes to a verdict with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from smith.freeze.bundle import Bundle
from smith.freeze.named import unnamed
from smith.freeze.overlap import Addition, added_lines
from smith.gpus.base import is_gpu
from smith.grade.launched import are_counted, is_asked, own_launches
from smith.grade.timing import CannotTime, measure
from smith.grade.trial import Bench
from smith.records.candidate import Kind
from smith.records.receipt import ReasonCode, Verdict
from smith.records.results import Outcome, TestResult
from smith.records.task import Variant
from smith.validate.findings import Findings


@dataclass(frozen=True)
class Judge:
    """Judges what was found about ``bundle`` on ``bench.device``."""

    bundle: Bundle
    bench: Bench
    nop_tree: str
    reference_tree: str
    solved_files: Collection[str]
    """Files that the reference touches."""
    step: Callable[[str], None]

    @property
    def variant(self) -> Variant:
        return self.bundle.spec.variant

    @property
    def unsolved(self) -> bool:
        """Whether this is a port that nobody has a solution of."""
        return self.bundle.spec.port is not None and not self.bundle.spec.port.solved

    def may_count(self, result: TestResult) -> bool:
        """Guards only guard: a fail-to-pass id comes from a file that the pull request changed, is an extra test, or
        for a variant is one that reaches its kernels. Where speed alone counts there is none."""
        if self.variant is Variant.OPTIMIZE or result.id.split("::", 1)[0] in self.bundle.selection.guards:
            return False
        if self.unsolved or not is_asked(self.bundle, self.bench.device):
            return True
        return bool(own_launches(self.bundle, result, self.solved_files))

    def guarding(self, found: Findings) -> list[str]:
        """The ids whose launches tell what is guarded, where nothing fails on the base."""
        return found.pass_to_pass if self.variant is Variant.OPTIMIZE else []

    def launches(self, results: Sequence[TestResult]) -> dict[str, int]:
        """Launches and nested calls of kernels in changed files, summed over ``results``."""
        if self.variant.has_own_start:
            total: Counter[str] = Counter()
            for result in results:
                total.update(own_launches(self.bundle, result, self.solved_files))
            return dict(sorted(total.items()))
        files = {k.path for k in self.bundle.spec.kernels}
        symbols = {f"{k.path}::{s}" for k in self.bundle.spec.kernels for s in k.code}
        counts: dict[str, int] = {}
        for result in results:
            for kernel, count in result.launches.items():
                if kernel in symbols or (kernel.split("::", 1)[0] in files and not symbols):
                    counts[kernel] = counts.get(kernel, 0) + count
        return dict(sorted(counts.items()))

    def nothing_passes(self, found: Findings, first: dict[str, TestResult]) -> Findings:
        """The reference passes no test: say why, in the words that help most."""
        outcomes = {r.outcome for r in first.values()}
        message = next((r.message for r in first.values() if r.message), "")
        if outcomes <= {Outcome.NOT_INTERPRETABLE, Outcome.SKIPPED} and Outcome.NOT_INTERPRETABLE in outcomes:
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.NOT_INTERPRETABLE, message)
        if outcomes <= {Outcome.SKIPPED, Outcome.XFAILED, Outcome.MISSING} and Outcome.SKIPPED in outcomes:
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_DEVICE, f"every test is skipped here: {message}")
        if outcomes <= {Outcome.TIMEOUT, Outcome.MISSING}:
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.TIMEOUT, "no test ends within its time limit here")
        return found.end(
            Verdict.INVALID, ReasonCode.REFERENCE_FAILS, f"no test passes on the reference: {message}"[:500]
        )

    def judge(self, found: Findings, first: dict[str, TestResult], inverted: Sequence[str]) -> Findings:
        if found.fail_to_pass:
            return self.judge_tests(found)
        if self.bundle.spec.kind in (Kind.PERF, Kind.TUNING) and not self.variant.has_own_start:
            return self.judge_speed(found)
        if found.flaky:
            names = ", ".join(sorted(found.flaky)[:3])
            return found.end(Verdict.INVALID, ReasonCode.UNSTABLE, f"every telling test is unstable: {names}")
        if inverted:
            return found.end(
                Verdict.INVALID, ReasonCode.INVERTED, f"passes on the base, fails on the reference: {inverted[0]}"
            )
        unable = [r for r in first.values() if r.outcome is Outcome.NOT_INTERPRETABLE]
        if unable:
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.NOT_INTERPRETABLE, unable[0].message)
        unseen = [i for i, r in first.items() if r.outcome is Outcome.MISSING and self.may_count(r)]
        if unseen:
            detail = (
                f"none of the tests that ran fails on the base, and {len(unseen)} were not reached in the time allowed"
            )
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.TIMEOUT, detail)
        return found.end(
            Verdict.INVALID,
            ReasonCode.NO_FAIL_TO_PASS,
            "every test that passes on the reference passes on the base too",
        )

    def judge_tests(self, found: Findings) -> Findings:
        if self.unsolved:
            detail = "the tests tell, and no port is known that passes them: freeze it again with --solution"
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_SOLUTION, detail)
        if are_counted(self.bundle, self.bench.device) and not found.launches:
            return found.end(
                Verdict.INVALID, ReasonCode.HOST_CODE_ONLY, "no fail-to-pass test launches a changed kernel"
            )
        reference = Addition(added_lines(self.bundle.reference), {})
        for test_id, result in found.base_results.items():
            name = unnamed(result, self.bundle.instruction, reference)
            if name is not None:
                detail = f"{test_id} needs {name}, which the instruction does not name"
                return found.end(Verdict.INVALID, ReasonCode.UNSPECIFIED_INTERFACE, detail)
        return found.end(Verdict.VALID)

    def judge_speed(self, found: Findings) -> Findings:
        """A performance task without failing tests: its reference must be measurably faster."""
        interpreter = self.bench.device.startswith("interpreter")
        held = "nothing fails on the base, and "
        if self.variant is Variant.OPTIMIZE:
            if not found.pass_to_pass:
                return found.end(Verdict.INVALID, ReasonCode.NO_TESTS, "no stable test guards the results")
            if are_counted(self.bundle, self.bench.device) and not found.launches:
                detail = "no test that passes on base and reference launches a changed kernel"
                return found.end(Verdict.INVALID, ReasonCode.HOST_CODE_ONLY, detail)
            held = f"correctness held ({len(found.pass_to_pass)} tests pass on base and reference), and "
        if interpreter:
            detail = f"{held}the interpreter measures no speed"
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_DEVICE, detail)
        if is_gpu(self.bench.device):
            detail = f"{held}this version measures no speed on a GPU"
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_DEVICE, detail)
        if not self.bundle.selection.workloads:
            detail = f"{held}the recipe names no workload to time"
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_WORKLOAD, detail)
        if not found.pass_to_pass or found.environment is None:
            return found.end(Verdict.INVALID, ReasonCode.NO_TESTS, "no stable test guards the results")
        self.step("timing")
        try:
            timing = measure(self.bench, self.bundle, found.environment, self.nop_tree, self.reference_tree)
        except CannotTime as error:
            return found.end(Verdict.UNRESOLVABLE, ReasonCode.NEEDS_WORKLOAD, str(error))
        found.timing = timing
        figures = f"{timing.geomean:.2f}x, interval {timing.low:.2f} to {timing.high:.2f}"
        if timing.low <= max(1.0, timing.noise_high):
            if timing.noise_high > 1.25:
                return found.end(
                    Verdict.UNRESOLVABLE, ReasonCode.NOISY, f"{figures}; noise up to {timing.noise_high:.2f}"
                )
            return found.end(Verdict.INVALID, ReasonCode.NO_SPEEDUP, figures)
        return found.end(Verdict.VALID)
