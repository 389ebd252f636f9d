"""From results to facts: what of them, and of the bundle, the rules ask about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from smith.freeze.bundle import Bundle
from smith.freeze.named import unnamed
from smith.freeze.overlap import Addition, added_lines
from smith.grade.launched import are_counted, is_asked, own_launches
from smith.records.base import Reason
from smith.records.facts import Asked, Facts, Seen, TestFacts
from smith.records.results import TestResult
from smith.records.task import Variant
from smith.verdict.sorting import may_count, tells

LINE = 300
"""Characters of a message that are kept."""


@dataclass
class _Test:
    reference: list[Seen] = field(default_factory=list)
    nop: list[Seen] = field(default_factory=list)
    seconds: float = 0.0
    launches: dict[str, int] = field(default_factory=dict)
    needs: str = ""
    message: str = ""


class Recorder:
    """Takes in the runs of one bundle on one device, and gives the facts so far."""

    def __init__(
        self, asked: Asked, launches: Callable[[TestResult], dict[str, int]], needs: Callable[[TestResult], str | None]
    ) -> None:
        """``launches`` picks those that count out of a result; ``needs`` the name for want of which it failed."""
        self.asked = asked
        self._launches, self._needs = launches, needs
        self._tests: dict[str, _Test] = {}
        self._said: set[tuple[str, str]] = set()

    @classmethod
    def of(cls, bundle: Bundle, device: str, solved_files: Collection[str]) -> Recorder:
        """For a bundle; ``solved_files`` are those that the reference touches."""
        spec, selection = bundle.spec, bundle.selection
        added = Addition(added_lines(bundle.reference), {})
        asked = Asked(
            kind=spec.kind,
            variant=spec.variant,
            guards=selection.guards,
            authored=selection.authored,
            budget_s=selection.budget_s,
            unsolved=spec.port is not None and not spec.port.solved,
            own_kernels=is_asked(bundle, device),
            counted=are_counted(bundle, device) and not device.startswith("interpreter"),
            workloads=bool(selection.workloads),
        )
        return cls(
            asked,
            lambda result: _counting(bundle, result, solved_files),
            lambda result: unnamed(result, bundle.instruction, added),
        )

    def runs(self, test_id: str) -> tuple[int, int]:
        """How often a test was run on the reference and on the base."""
        test = self._tests[test_id]
        return len(test.reference), len(test.nop)

    def reference(self, results: Mapping[str, TestResult]) -> None:
        """Take in one run of the reference."""
        for test_id, result in results.items():
            test = self._tests.setdefault(test_id, _Test())
            if not test.reference:
                test.seconds = result.seconds
                test.launches = self._launches(result)
                test.message = self._message(result)
            test.reference.append(Seen.of(result))

    def nop(self, results: Mapping[str, TestResult]) -> None:
        """Take in one run of the base."""
        for test_id, result in results.items():
            test = self._tests[test_id]
            if not test.nop:
                test.needs = self._needs(result) or ""
            test.nop.append(Seen.of(result))

    def facts(self, *, stopped: Reason | None = None, cannot_time: str = "", noisy: bool = False) -> Facts:
        """Everything so far. Launches are kept where they can matter: a thousand tests have thousands of them."""
        whole = {
            i: TestFacts(
                reference=tuple(t.reference),
                nop=tuple(t.nop),
                seconds=t.seconds,
                launches=t.launches,
                needs=t.needs,
                message=t.message,
            )
            for i, t in self._tests.items()
        }
        telling = {i for i, t in whole.items() if tells(t)}
        told = self.asked.variant is not Variant.OPTIMIZE and any(may_count(self.asked, i, whole[i]) for i in telling)
        tests = {}
        for i, t in whole.items():
            keeps = i in telling or (not told and bool(t.reference) and t.reference[0].passed)
            kept = {"launches": t.launches if keeps else {}, "needs": t.needs if i in telling else ""}
            tests[i] = t.model_copy(update=kept)
        return Facts(asked=self.asked, stopped=stopped, cannot_time=cannot_time, noisy=noisy, tests=tests)

    def _message(self, result: TestResult) -> str:
        """The first line of a message, once for each that is said."""
        line = result.message.strip().partition("\n")[0][:LINE]
        said = (result.outcome.value, line)
        if Seen.of(result).passed or said in self._said:
            return ""
        self._said.add(said)
        return line


def _counting(bundle: Bundle, result: TestResult, solved_files: Collection[str]) -> dict[str, int]:
    """Launches and nested calls of kernels in changed files, or for a variant of the task's own kernels."""
    spec = bundle.spec
    if spec.variant.has_own_start:
        return dict(sorted(own_launches(bundle, result, solved_files).items()))
    files = {k.path for k in spec.kernels}
    symbols = {f"{k.path}::{s}" for k in spec.kernels for s in k.code}
    counts: Counter[str] = Counter()
    for kernel, count in result.launches.items():
        if kernel in symbols or (kernel.split("::", 1)[0] in files and not symbols):
            counts[kernel] += count
    return dict(sorted(counts.items()))
