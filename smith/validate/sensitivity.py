"""Sensitivity: how many of the faults planted in the reference the tests of a valid task catch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smith.freeze.bundle import Bundle
from smith.grade.trial import Bench
from smith.harness.environment import TestEnvironment
from smith.records.receipt import Receipt
from smith.records.results import Failure, Outcome, TestResult
from smith.records.sensitivity import Fate, PlantedFault, Sensitivity
from smith.records.workload import Workload
from smith.validate.planted import Fault, plant, shown_diff
from smith.validate.reseeded import reseeded
from smith.validate.reshaped import reshaped
from smith.validate.trees import Ended, Trees, batched

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
    workload: Workload | None = None,
) -> Receipt:
    """The receipt of a valid task with what became of every planted fault. Raises nothing for what a fault does.

    In the recorded calls of ``workload`` survivors are held against the reference besides, in other shapes too.
    """
    began = time.monotonic()
    planted = plant(bench.store, bundle, bench.device, asked.mutants, start_fails=bool(receipt.fail_to_pass))
    budget = asked.budget_s if asked.budget_s is not None else BUDGET_FACTOR * bundle.selection.budget_s
    trees = Trees(bundle, bench, environment, cheapest_first(receipt), planted.solution, began + budget)
    results: list[PlantedFault] = []
    for some in batched(planted.faults, trees.together):
        last = len(results) + len(some)
        step(f"planted faults {len(results) + 1} to {last} of {len(planted.faults)}")
        ended = iter(trees.ended([fault.tree for fault in some if fault.tree is not None]))
        results += [_result(fault, next(ended) if fault.tree is not None else None, trees) for fault in some]
    results, seeds = reseeded(results, planted.faults, trees, step)
    results, shapes = reshaped(results, planted.faults, trees, workload, step)
    seconds = round(time.monotonic() - began, 2)
    found = Sensitivity(
        faults=tuple(results),
        mutants=asked.mutants,
        sites=planted.sites,
        budget_s=budget,
        seeds=seeds,
        shapes=shapes,
        seconds=seconds,
    )
    return receipt.model_copy(
        update={"sensitivity": found.share, "planted": found, "seconds": round(receipt.seconds + seconds, 2)}
    )


def cheapest_first(receipt: Receipt) -> list[str]:
    """The tests that count: fail-to-pass before the others, within each those that take the least time first."""
    seen = receipt.facts.tests if receipt.facts is not None else {}
    return [
        test
        for some in (receipt.fail_to_pass, receipt.pass_to_pass)
        for test in sorted(some, key=lambda test: seen[test].seconds if test in seen else 0.0)
    ]


def _result(fault: Fault, ended: Ended | None, trees: Trees) -> PlantedFault:
    caught: TestResult | None = None
    fate, detail, shown, seconds = fault.fate, fault.detail, "", 0.0
    if fault.tree is not None:
        if ended is None:
            fate = Fate.NOT_TRIED
        elif ended.run is None:
            fate, detail, seconds = Fate.VOID, ended.why, ended.seconds
        else:
            fate, caught, detail = judged(ended.run.results, ended.run.note or ended.run.ending)
            seconds = ended.seconds
        if fate is Fate.SURVIVED:
            shown = shown_diff(trees.bench.store.scratch, trees.solution, fault.tree)
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
        seconds=round(seconds, 2),
    )


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
