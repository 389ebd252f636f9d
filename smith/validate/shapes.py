"""Which variants of recorded calls the reference answers: only those say anything about anything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from smith.harness.replaying import PASSES, Made
from smith.oracle.arrays import EPSILON, Array
from smith.oracle.compare import Outcome, difference
from smith.oracle.shapes import LAYOUTS, NAMES, Name, Proposal, proposals
from smith.records.shapes import VariantTried
from smith.records.workload import Call
from smith.validate.workloads import Side, Tried, drawn, tried_on_reference

SLOWER, SLACK_S = 10.0, 5.0
"""How much longer a variant may take than the call as it was recorded."""
HANG_S = 60.0
"""What all calls of one process may take besides, on a busy machine."""
CRASHES = 8
"""Variants that may end the reference's process: they read and write where no recorded call did."""


@dataclass(frozen=True)
class Usable:
    """A variant of the call with that number in the workload, and what the reference gives in it."""

    name: Name
    number: int
    call: Call
    want: Sequence[Outcome]


def usable(reference: Side, calls: Sequence[Call], seed: int, left_s: float) -> tuple[list[Usable], list[VariantTried]]:
    """The variants that count, in the order of their names, and for each name in how many calls there is none.

    Of several ways to a variant the first in which the reference raises nothing is taken. It counts where the reference
    gives the same in another process; and where only the layout is another, the same as without.
    """
    first = _that_run(reference, calls, seed, left_s)
    refused: dict[Name, Counter[str]] = {name: Counter() for name in NAMES}
    for number in range(len(calls)):
        for name in NAMES:
            if not isinstance(one := first.get((name, number), "none"), Proposal):
                refused[name][one] += 1
    some = [(name, number, one) for (name, number), one in first.items() if isinstance(one, Proposal)]
    some.sort(key=lambda one: NAMES.index(one[0]))
    silent = [place for place, (name, _, _) in enumerate(some) if name == "empty"]
    limit = pace([calls[number].seconds for _, number, _ in some], left_s)
    done = tried_on_reference(reference, [(n, one.call) for _, n, one in some], seed, limit, silent=silent)
    plain = {number: tried for (name, number, _), tried in zip(some, done, strict=True) if name == "recorded"}
    found = []
    for (name, number, one), tried in zip(some, done, strict=True):
        why = tried.reason or (_by_layout(calls[number], plain.get(number), tried) if name in LAYOUTS else "")
        if why:
            refused[name][why] += 1
            continue
        call = calls[number].model_copy(update={"call": one.call, "errors": _errors(calls[number], tried)})
        found.append(Usable(name, number, call, tried.want))
    return found, [VariantTried(name=n, calls=len(calls), refused=dict(sorted(refused[n].items()))) for n in NAMES]


def pace(seconds: Sequence[float], left_s: float) -> float:
    """Seconds that each of several calls may take on average in one pass, from those that they took when they were
    recorded: one that hangs must not take the time of all that follows."""
    most = min(HANG_S + SLOWER * sum(seconds), max(0.0, left_s))
    return most / (PASSES * max(1, len(seconds)))


def _that_run(
    reference: Side, calls: Sequence[Call], seed: int, left_s: float
) -> dict[tuple[Name, int], Proposal | str]:
    """By variant and call, the first proposal that the reference carries out; or why it does none.

    What is recorded comes first and what is empty last: what ends the process often takes the chance of those behind.
    """
    asked = [(number, one) for number, call in enumerate(calls) for one in proposals(call.call)]
    asked.sort(key=lambda one: NAMES.index(one[1].name))
    made = [Made(one.call, drawn(one.call, seed, number)) for number, one in asked]
    limit = pace([calls[number].seconds for number, _ in asked], left_s)
    outcomes = reference.replayed(made, 1, limit, CRASHES, left_s)
    found: dict[tuple[Name, int], Proposal | str] = {}
    for (number, one), some in zip(asked, outcomes, strict=True):
        if isinstance(found.get((one.name, number)), Proposal):
            continue
        most = SLOWER * calls[number].seconds + SLACK_S
        if any(outcome.error for outcome in some):
            why = "not_replayable" if all(outcome.reached for outcome in some) else "not_reached"
            found.setdefault((one.name, number), why)
        elif max(outcome.seconds for outcome in some) > most:
            found.setdefault((one.name, number), "too_slow")
        else:
            found[one.name, number] = one
    return found


def _by_layout(call: Call, plain: Tried | None, tried: Tried) -> str:
    """``layout`` where the reference gives something else for the same values in another layout."""
    if plain is None or plain.reason:
        return "layout"
    floats = any(tensor.dtype in EPSILON for tensor in call.call.tensors)
    pairs = zip(map(_bare, plain.want), map(_bare, tried.want), strict=True)
    return "layout" if any(difference(one, other, tried.errors, floats=floats) for one, other in pairs) else ""


def _bare(outcome: Outcome) -> Outcome:
    """Values alone: how results lie in memory may follow from how inputs do."""

    def bare(array: Array | None) -> Array | None:
        return replace(array, layout="contiguous") if array is not None else None

    return replace(
        outcome,
        outputs=tuple(replace(array, layout="contiguous") for array in outcome.outputs),
        shares=tuple(((), ()) for _ in outcome.shares),
        grads=tuple(map(bare, outcome.grads)),
        inputs=tuple(map(bare, outcome.inputs)),
        overwritten=(),
    )


def _errors(call: Call, tried: Tried) -> dict[str, float]:
    """How far results move: the farther of what was seen here and when the call was recorded."""
    return {name: max(error, call.errors.get(name, 0.0)) for name, error in tried.errors.items()}
