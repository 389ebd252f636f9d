"""Survivors tried once more with other inputs: the same tests, with every seed moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smith.records.results import Outcome, TestRun
from smith.records.sensitivity import Fate, PlantedFault
from smith.validate.planted import Fault
from smith.validate.trees import Trees, batched

SHIFTS = (1, 2)
"""How far seeds are moved."""


def reseeded(
    results: Sequence[PlantedFault],
    faults: Sequence[Fault],
    trees: Trees,
    step: Callable[[str], None] = lambda text: None,
) -> tuple[list[PlantedFault], tuple[int, ...]]:
    """The results, survivors with what another seed shows, and the seeds that all of them were tried with.

    Only tests that the solution passes with that seed say anything. A survivor stays one: the tests of the task are as
    they are.
    """
    found = {result.name: result for result in results}
    tree_of = {fault.name: fault.tree for fault in faults}
    seeds = []
    for shift in SHIFTS:
        left = [r for r in found.values() if r.fate is Fate.SURVIVED and r.seed is None]
        if not left or trees.left_s <= 0:
            break
        step(f"{len(left)} survivors with another seed ({shift})")
        (plain,) = trees.runs([trees.solution], trees.ids, shift=shift, stop_at_failure=False)
        good = [r.id for r in plain.results if r.outcome is Outcome.PASSED] if plain is not None else []
        whole = bool(good)
        for some in batched(left, trees.together) if good else ():
            runs = trees.runs([tree_of[r.name] or "" for r in some], good, shift=shift, stop_at_failure=True)
            whole = whole and None not in runs
            for result, run in zip(some, runs, strict=True):
                if run is not None and (test := _missed(run)):
                    found[result.name] = result.model_copy(update={"seed": shift, "seed_test": test})
        if whole:
            seeds.append(shift)
    return [found[result.name] for result in results], tuple(seeds)


def _missed(run: TestRun) -> str:
    """The first test that was reached and does not pass; empty where there is none."""
    none = (Outcome.PASSED, Outcome.MISSING, Outcome.NOT_INTERPRETABLE)
    return next((result.id for result in run.results if result.outcome not in none), "")
