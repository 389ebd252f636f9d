"""Probes: wrong solutions that the hidden tests must refuse, and other right ones that they must let pass."""

from __future__ import annotations

from collections.abc import Sequence

from smith.errors import PatchError
from smith.freeze.bundle import Bundle
from smith.grade.grader import checked_tree
from smith.grade.trial import Bench, graded_tree, reference_tree, trial
from smith.harness.environment import TestEnvironment
from smith.records.receipt import ProbeResult
from smith.records.results import Failure, Outcome, TestResult
from smith.records.task import Probe

REPEATS = 2
"""Runs of each probe, each in a fresh place, the second in reverse order."""
_MOST = 5
_TRIVIAL = frozenset({Failure.IMPORT, Failure.COLLECTION})


def try_probe(
    bench: Bench, bundle: Bundle, environment: TestEnvironment, probe: Probe, ids: Sequence[str]
) -> ProbeResult:
    """Run the tests ``ids`` on one probe. Whatever the probe does is a result; only smith's own faults raise."""

    def result(detail: str = "", failing: Sequence[str] = ()) -> ProbeResult:
        return ProbeResult(
            name=probe.name, kind=probe.kind, as_expected=not detail, failing=tuple(failing[:_MOST]), detail=detail
        )

    try:
        submission = checked_tree(bundle, bundle.probe_patch(probe.name), bench)
    except PatchError as error:
        return result(f"its patch is refused: {error.rule}: {error.path or error.message}")
    tree = graded_tree(bench.store, bundle, submission)
    if submission == bundle.spec.source.tree:
        return result("it changes nothing")
    if tree == reference_tree(bench.store, bundle):
        return result("it is the reference solution")
    failing: list[str] = []
    for repeat in range(REPEATS):
        with trial(bench, bundle, environment, tree) as place:
            if place.build_error:
                return result(f"it does not build: {place.build_error}")
            results = place.run(ids if repeat % 2 == 0 else list(reversed(ids))).by_id()
        missed = [results.get(i, TestResult(id=i, outcome=Outcome.MISSING)) for i in ids]
        missed = [r for r in missed if r.outcome is not Outcome.PASSED]
        failing = [r.id for r in missed]
        if probe.kind == "alternative" and missed:
            return result(f"{missed[0].id} is {missed[0].outcome.value}: {missed[0].message}"[:500], failing)
        if probe.kind == "wrong" and not missed:
            return result("every hidden test passes on it")
        if probe.kind == "wrong" and all(r.failure in _TRIVIAL or r.outcome is Outcome.MISSING for r in missed):
            # What cannot even be imported shows nothing about the tests.
            return result(f"it only cannot be imported: {missed[0].message}"[:500], failing)
    return result(failing=failing)
