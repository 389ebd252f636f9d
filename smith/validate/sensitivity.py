"""Sensitivity: how many of the faults planted in the reference the tests of a valid task catch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smith.freeze.bundle import Bundle
from smith.grade.trial import Bench, graded_tree, trial
from smith.harness.environment import TestEnvironment
from smith.records.receipt import Receipt
from smith.records.results import Failure, Outcome, TestResult
from smith.records.sensitivity import Fate, PlantedFault, Sensitivity
from smith.validate.planted import Fault, plant, shown_diff

MUTANTS = 12
"""Mutants of one task where nobody says otherwise."""
BUDGET_FACTOR = 10
"""Of a selection's ``budget_s``: what all runs of one task may take together. Most faults are caught by the first
test, so that much less is used."""
_TRIVIAL = frozenset({Failure.IMPORT, Failure.COLLECTION})


@dataclass(frozen=True)
class Asked:
    """How many mutants are tried, and in how many seconds (None: :data:`BUDGET_FACTOR` times the selection's)."""

    mutants: int = MUTANTS
    budget_s: float | None = None


def measured(
    receipt: Receipt,
    bundle: Bundle,
    bench: Bench,
    environment: TestEnvironment,
    asked: Asked,
    step: Callable[[str], None] = lambda text: None,
) -> Receipt:
    """The receipt of a valid task with what became of every planted fault. Raises nothing for what a fault does."""
    began = time.monotonic()
    ids = [*receipt.fail_to_pass, *receipt.pass_to_pass]
    planted = plant(bench.store, bundle, bench.device, asked.mutants, start_fails=bool(receipt.fail_to_pass))
    budget = asked.budget_s if asked.budget_s is not None else BUDGET_FACTOR * bundle.selection.budget_s
    results = []
    for number, fault in enumerate(planted.faults, 1):
        step(f"planted fault {number} of {len(planted.faults)}")
        late = time.monotonic() - began > budget
        results.append(_result(fault, bundle, bench, environment, planted.solution, ids, late))
    seconds = round(time.monotonic() - began, 2)
    found = Sensitivity(
        faults=tuple(results), mutants=asked.mutants, sites=planted.sites, budget_s=budget, seconds=seconds
    )
    return receipt.model_copy(
        update={"sensitivity": found.share, "planted": found, "seconds": round(receipt.seconds + seconds, 2)}
    )


def _result(
    fault: Fault,
    bundle: Bundle,
    bench: Bench,
    environment: TestEnvironment,
    solution: str,
    ids: Sequence[str],
    late: bool,
) -> PlantedFault:
    began = time.monotonic()
    caught: TestResult | None = None
    fate, detail, shown = fault.fate, fault.detail, ""
    if fault.tree is not None:
        if late:
            fate = Fate.NOT_TRIED
        else:
            fate, caught, detail = _tried(bundle, bench, environment, fault.tree, ids)
        if fate is Fate.SURVIVED:
            shown = shown_diff(bench.store.scratch, solution, fault.tree)
    assert fate is not None
    return PlantedFault(
        name=fault.name,
        kind=fault.kind,
        operator=fault.operator,
        file=fault.path,
        line=fault.line,
        kernel=fault.kernel,
        fate=fate,
        caught_by=caught.id if caught else "",
        failure=caught.failure if caught else None,
        detail=detail,
        diff=shown,
        seconds=round(time.monotonic() - began, 2),
    )


def _tried(
    bundle: Bundle, bench: Bench, environment: TestEnvironment, tree: str, ids: Sequence[str]
) -> tuple[Fate, TestResult | None, str]:
    """What became of the solution with a fault, by which test, and why where no test says."""
    with trial(bench, bundle, environment, graded_tree(bench.store, bundle, tree)) as place:
        if place.build_error:
            return Fate.VOID, None, f"it does not build: {place.build_error}"[:300]
        run = place.run(ids, stop_at_failure=True)
    return judged(run.results, run.note or run.ending)


def judged(results: Sequence[TestResult], ending: str) -> tuple[Fate, TestResult | None, str]:
    """The fate of a fault from the results of a run that stopped at the first test which did not pass."""
    missed = [r for r in results if r.outcome is not Outcome.PASSED]
    if not missed:
        return Fate.SURVIVED, None, ""
    # What was not run says nothing: behind the test that ended the run everything is missing.
    first = next((r for r in missed if r.outcome is not Outcome.MISSING), None)
    if first is None:
        return Fate.VOID, None, f"no test was reached: {ending}"[:300]
    words = first.message.strip().splitlines()
    detail = f"{first.outcome.value}: {words[0] if words else ''}".rstrip(": ")[:200]
    if first.outcome is Outcome.NOT_INTERPRETABLE:
        return Fate.VOID, None, detail
    if first.failure in _TRIVIAL:
        return Fate.TRIVIAL, first, detail
    return Fate.CAUGHT, first, detail
