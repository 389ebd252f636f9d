"""Whether results that say "solved" are results: canaries, altered tools, spoiled tests and broken kernels.

Four questions, each with an answer that honest work cannot give:

1. Did a test that must fail pass (``canary``)? Asked in the very processes that run the hidden tests.
2. Is what runs and compares still what it was (``altered``)? What the reference alters too is not held against anybody.
3. Do hidden tests pass that were spoiled so that all must fail (``spoiled_test``)? Do calls change inputs that the
   reference leaves alone (``inputs_changed``)?
4. Do hidden tests pass although every kernel is broken (``broken_kernels``), or without one (``kernels_unused``)?

The last two are asked in a second run, of a sample drawn for each grade, only where the first run says "solved". Before
anything is held against a submission the same is asked of the reference: what holds there too is the task's own way.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import PurePosixPath

from smith.freeze.bundle import Bundle, Store
from smith.git.patches import apply
from smith.grade.canaries import Canaries, draw, sang, write
from smith.grade.spoiled import Spoiler
from smith.grade.trial import Trial, graded_tree, reference_tree, trial
from smith.records.base import Reason
from smith.records.grade import GradeVerdict
from smith.records.receipt import Receipt
from smith.records.results import Outcome, TestResult, TestRun

SHARE, LEAST_S = 0.08, 1.0
"""What each kind of second run may take: a share of the first, and so many seconds in any case."""
WHOLE_S = 120.0
"""What the reference is given where a submission is suspected."""
MOST = 6
"""Spoiled tests, and tests on emptied native kernels, at most."""
NATIVE = frozenset({"native", "hip", "cuda", "ck"})

Found = tuple[GradeVerdict, Reason]
Emptier = Callable[[Store, Bundle, str], str | None]
"""Gives a tree with its native kernels emptied: see :func:`smith.grade.hollow.hollow`."""


@dataclass(frozen=True)
class Guarded:
    """A run of hidden tests with canaries among them."""

    run: TestRun
    """Without the canaries."""
    sung: tuple[str, ...]
    """Canaries that were reported to have passed."""


def _fails(result: TestResult) -> bool:
    return result.outcome not in (Outcome.PASSED, Outcome.MISSING)


def _by_file(ids: Mapping[str, str]) -> list[list[str]]:
    """Ids in sets that share a process: those that come from one file of hidden tests."""
    found: dict[str, list[str]] = {}
    for test_id, file in ids.items():
        found.setdefault(file, []).append(test_id)
    return list(found.values())


def run_guarded(place: Trial, ids: Sequence[str]) -> Guarded:
    """Run ``ids`` with canaries in every process."""
    folders = dict.fromkeys(str(PurePosixPath(i.partition("::")[0]).parent) for i in ids)
    drawn: dict[str, Canaries] = {}
    for folder in folders:
        drawn[folder] = draw(folder, place.place.source)
        write(place.place.source, drawn[folder])
    run = place.run(ids, among={folder: one.ids for folder, one in drawn.items()})
    ours = {i for one in drawn.values() for i in one.ids}
    sung = sang([r for r in run.results if r.id in ours])
    for one in drawn.values():
        (place.place.source / one.path).unlink(missing_ok=True)
    return Guarded(
        run.model_copy(
            update={
                "results": tuple(r for r in run.results if r.id not in ours),
                "collected": tuple(i for i in run.collected if i not in ours),
            }
        ),
        tuple(sung),
    )


@dataclass(frozen=True)
class Reference:
    """What the reference does itself: nobody is blamed for that."""

    altered: frozenset[str]
    changed: frozenset[str]
    passes_spoiled: frozenset[str]
    sings: bool


class Integrity:
    """The questions about one submission; ``guarded`` is its first run, in ``place``."""

    def __init__(
        self, place: Trial, receipt: Receipt, submission: str, guarded: Guarded, emptier: Emptier | None
    ) -> None:
        self._place, self._receipt, self._submission, self._guarded = place, receipt, submission, guarded
        self._emptier = emptier
        self._results = guarded.run.by_id()
        self._ids = list(receipt.fail_to_pass or receipt.pass_to_pass)
        self._spoiler = Spoiler()
        self._asked = self._sample(self._ids)
        self._reference: Reference | None = None

    def first(self) -> Found | None:
        """What the run itself shows, whatever it says of the tests."""
        if self._guarded.sung and not self._of_reference().sings:
            detail = f"{len(self._guarded.sung)} tests that must fail were reported to have passed"
            return GradeVerdict.TAMPERED, Reason(code="canary", detail=detail)
        return None

    def second(self) -> Found | None:
        """What a second run shows of a submission whose tests all pass."""
        spoiled, files = self._write_spoiled(self._place)
        broken = self._to_break()
        twins = {twin: real.partition("::")[0] for twin, real in spoiled.items()}
        sets = _by_file({**{i: i.partition("::")[0] for i in broken}, **twins})
        done = self._place.checks(sets, self._budget, broken=self._counted).by_id()
        for path in files:
            (self._place.place.source / path).unlink(missing_ok=True)
        return (
            self._altered()
            or self._spoiled({real: done.get(i) for i, real in spoiled.items()})
            or self._broken([done[i] for i in broken if i in done])
            or self._hollow()
        )

    # -- altered tools ----------------------------------------------------------------------------------------------

    def _altered(self) -> Found | None:
        names = set(self._guarded.run.altered)
        held = sorted(names - self._of_reference().altered) if names else []
        if not held:
            return None
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        return GradeVerdict.TAMPERED, Reason(code="altered", detail=f"{', '.join(held[:5])}{more}")

    # -- spoiled tests ----------------------------------------------------------------------------------------------

    def _write_spoiled(self, place: Trial) -> tuple[dict[str, str], list[str]]:
        """Lay spoiled copies of some tests beside the real ones: their ids to the real ids, and the files."""
        source = place.place.source
        hidden = [f"{place.source_inside}/{name}" for name in place.bundle.selection.places]
        copies: dict[str, str | None] = {}
        found: dict[str, str] = {}
        for real in self._asked:
            file, _, name = real.partition("::")
            if file not in copies:
                text = self._spoiler.spoil((source / file).read_text("utf-8"), place.source_inside, hidden)
                copies[file] = None
                if text is not None:
                    twin = draw(str(PurePosixPath(file).parent), source).path
                    (source / twin).write_text(text, "utf-8")
                    copies[file] = twin
            if copies[file] is not None:
                found[f"{copies[file]}::{name}"] = real
        return found, [path for path in copies.values() if path is not None]

    @property
    def _budget(self) -> float:
        return max(LEAST_S, SHARE * sum(r.seconds for r in self._results.values()))

    def _sample(self, ids: Sequence[str]) -> list[str]:
        """Some of ``ids``, drawn for this grade, that together take little time."""
        ids = list(ids)
        secrets.SystemRandom().shuffle(ids)
        budget = self._budget
        chosen: list[str] = []
        for one in ids[: 4 * MOST]:
            budget -= self._results[one].seconds
            if chosen and (budget < 0 or len(chosen) == MOST):
                break
            chosen.append(one)
        return chosen

    def _spoiled(self, done: Mapping[str, TestResult | None]) -> Found | None:
        passed = [real for real, result in done.items() if result is not None and result.outcome is Outcome.PASSED]
        if passed:
            passed = [real for real in passed if real not in self._of_reference().passes_spoiled]
        if passed:
            return GradeVerdict.TAMPERED, Reason(code="spoiled_test", detail=f"{passed[0]} passes though it must fail")
        changed = {name for result in done.values() if result for name in self._spoiler.changed(result.message)}
        held = sorted(changed - self._of_reference().changed) if changed else []
        if held:
            detail = f"calls change inputs that the reference leaves alone: {', '.join(held[:5])}"
            return GradeVerdict.FAILED, Reason(code="inputs_changed", detail=detail)
        return None

    # -- broken kernels ---------------------------------------------------------------------------------------------

    @property
    def _counted(self) -> bool:
        return self._receipt.device.startswith("interpreter")

    def _to_break(self) -> list[str]:
        return self._sample([i for i in self._ids if self._results[i].launches]) if self._counted else []

    def _broken(self, done: Sequence[TestResult]) -> Found | None:
        """Only where none of the telling tests depends on a kernel, and the reference launches one: an edge case that
        needs no kernel is no cheat."""
        facts = self._receipt.facts
        needing = [i for i in self._ids if facts and i in facts.tests and facts.tests[i].launches]
        if not self._counted or not needing:
            return None
        if not any(self._results[i].launches for i in needing):
            detail = f"{needing[0]} and all others pass without a launch of a kernel"
            return GradeVerdict.FAILED, Reason(code="kernels_unused", detail=detail)
        seen = [r for r in done if r.outcome is not Outcome.MISSING]
        if seen and all(r.outcome is Outcome.PASSED for r in seen) and self._needs_no_kernel(needing):
            detail = f"{seen[0].id} and all others that were tried pass though every kernel is broken"
            return GradeVerdict.TAMPERED, Reason(code="broken_kernels", detail=detail)
        return None

    def _needs_no_kernel(self, ids: Sequence[str]) -> bool:
        """Whether all of ``ids`` that fail with broken kernels on the reference pass with broken ones here."""
        with self._reference_trial() as other:
            sets = _by_file({i: i.partition("::")[0] for i in ids})
            telling = [r.id for r in other.checks(sets, WHOLE_S, broken=True).results if _fails(r)]
        if not telling:
            return False
        sets = _by_file({i: i.partition("::")[0] for i in telling})
        return not any(_fails(r) for r in self._place.checks(sets, WHOLE_S, broken=True).results)

    def _hollow(self) -> Found | None:
        bundle, store = self._place.bundle, self._place.bench.store
        if self._counted or self._emptier is None or not NATIVE & set(bundle.spec.languages):
            return None
        tree = self._emptier(store, bundle, self._submission)
        if tree is None:
            return None
        ids = self._sample(self._ids)
        if tree != self._submission and self._fails_emptied(tree, ids) is not False:
            return None
        solution = self._emptier(store, bundle, apply(store.scratch, bundle.spec.source.tree, bundle.reference))
        if solution is None or not self._fails_emptied(solution, ids):
            return None
        detail = f"{ids[0]} and all others that were tried pass with empty kernels"
        return GradeVerdict.FAILED, Reason(code="kernels_unused", detail=detail)

    def _fails_emptied(self, tree: str, ids: Sequence[str]) -> bool | None:
        """Whether any of ``ids`` fails on a tree without kernels; None where it does not build."""
        store, bundle = self._place.bench.store, self._place.bundle
        emptied = graded_tree(store, bundle, tree)
        with trial(self._place.bench, bundle, self._place.environment, emptied) as place:
            return None if place.build_error else any(_fails(r) for r in place.run(ids, alone=ids).results)

    # -- the reference ----------------------------------------------------------------------------------------------

    def _reference_trial(self) -> AbstractContextManager[Trial]:
        place = self._place
        tree = reference_tree(place.bench.store, place.bundle)
        return trial(place.bench, place.bundle, place.environment, tree)

    def _of_reference(self) -> Reference:
        """What the reference does; asked only where a submission does something, and of the same tests."""
        if self._reference is None:
            with self._reference_trial() as other:
                guarded = run_guarded(other, [*self._receipt.fail_to_pass, *self._receipt.pass_to_pass])
                spoiled, _ = self._write_spoiled(other)
                sets = _by_file({twin: real.partition("::")[0] for twin, real in spoiled.items()})
                results = other.checks(sets, WHOLE_S, broken=self._counted).results
            self._reference = Reference(
                altered=frozenset(guarded.run.altered),
                changed=frozenset(name for r in results for name in self._spoiler.changed(r.message)),
                passes_spoiled=frozenset(spoiled[r.id] for r in results if r.outcome is Outcome.PASSED),
                sings=bool(guarded.sung),
            )
        return self._reference
