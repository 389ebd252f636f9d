"""Survivors held against the reference in recorded calls, also in shapes and layouts that no test has."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from smith.grade.oracle import first_difference
from smith.harness.replaying import Made
from smith.records.sensitivity import Fate, PlantedFault
from smith.records.shapes import SeenInCalls, ShapeTrial
from smith.records.workload import Call, Workload
from smith.validate.planted import Fault
from smith.validate.shapes import Usable, pace, usable
from smith.validate.trees import Trees
from smith.validate.workloads import Side, drawn

MOST_CALLS = 8
"""Calls of a workload that are varied."""
MOST_S = 4.0
"""Seconds that they take together as they were recorded; the first may take longer."""
CRASHES = 2


def reshaped(
    results: Sequence[PlantedFault],
    faults: Sequence[Fault],
    trees: Trees,
    workload: Workload | None,
    step: Callable[[str], None] = lambda text: None,
) -> tuple[list[PlantedFault], ShapeTrial | None]:
    """The results, survivors with what recorded calls show of them; None besides where there is nothing to try.

    A survivor stays one: the tests of the task do not see it. Nothing is begun once the time of ``trees`` is used up.
    """
    left = [result for result in results if result.fate is Fate.SURVIVED]
    calls = chosen(workload.calls) if workload is not None else []
    if workload is None or not left or not calls or trees.left_s <= 0:
        return list(results), None
    began = time.monotonic()
    seed = int(trees.bundle.tree[12:24], 16)
    step(f"{len(calls)} recorded calls in other shapes")
    there, tried = usable(_side(trees, trees.solution), calls, seed, trees.left_s)
    limit = pace([one.call.seconds for one in there], trees.left_s)
    tree_of = {fault.name: fault.tree for fault in faults}
    found = {result.name: result for result in results}
    count = 0
    for result in left if there else ():
        tree = tree_of[result.name]
        if tree is None or trees.left_s <= 0:
            continue
        step(f"survivor {count + 1} of {len(left)} in {len(there)} calls")
        count += 1
        seen = _seen(_side(trees, tree), there, seed, limit, trees.left_s)
        if seen is not None:
            found[result.name] = result.model_copy(update={"in_calls": seen})
    trial = ShapeTrial(
        workload=workload.digest,
        calls=len(calls),
        seed=seed,
        variants=tuple(tried),
        survivors=count,
        seconds=round(time.monotonic() - began, 2),
    )
    return [found[result.name] for result in results], trial


def chosen(calls: Sequence[Call]) -> list[Call]:
    """The calls that are varied: those of each entry in turn, the quickest of an entry first."""
    groups: dict[str, list[Call]] = {}
    for call in calls:
        groups.setdefault(call.call.entry, []).append(call)
    for some in groups.values():
        some.sort(key=lambda call: call.seconds)
    found: list[Call] = []
    for turn in range(max(map(len, groups.values()), default=0)):
        for some in groups.values():
            if turn < len(some) and len(found) < MOST_CALLS:
                spent = sum(call.seconds for call in found)
                if not found or spent + some[turn].seconds <= MOST_S:
                    found.append(some[turn])
    return found


def _side(trees: Trees, tree: str) -> Side:
    return Side(trees.bench, trees.bundle, trees.environment, tree)


def _seen(survivor: Side, there: Sequence[Usable], seed: int, limit: float, left_s: float) -> SeenInCalls | None:
    """In which variants a survivor differs; None where in none, or where it could not be tried."""
    made = [Made(one.call.call, drawn(one.call.call, seed, one.number)) for one in there]
    got = survivor.replayed(made, 1, limit, CRASHES, left_s)
    first: tuple[str, str] | None = None
    names: list[str] = []
    for one, outcomes in zip(there, got, strict=True):
        if not outcomes or not all(outcome.reached for outcome in outcomes):
            continue
        if words := first_difference(one.call, one.want, outcomes):
            first = first or (str(one.call.call)[:300], words[:300])
            names += [one.name] if one.name not in names else []
    return SeenInCalls(variants=tuple(names), call=first[0], difference=first[1]) if first else None
