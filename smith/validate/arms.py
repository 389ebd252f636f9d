"""Which tests are run on which side, how often, in which order and with which seed: until nothing is left to learn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from smith.records.receipt import Arm
from smith.records.results import Failure, Outcome, TestResult
from smith.validate.recorder import Recorder
from smith.verdict import authored
from smith.verdict.sorting import Sorted, by_speed, settled, sort

ALONE_LIMIT = 3
"""How many fail-to-pass ids are also run alone: each pays for importing the repository once more."""
UNCOLLECTED_LIMIT = 24
"""How many ids whose file the base cannot collect are run alone on it: that takes the time of an import each."""
UNSTABLE_LIMIT = 8
"""How many ids that have changed their mind are run on, so that their rate is known."""

Order = Literal["selected", "reversed", "shuffled"]


@dataclass(frozen=True)
class Leg:
    """One run of one arm: what to run, in this order; ``alone`` in a process of its own each."""

    arm: Literal["reference", "nop"]
    repeat: int
    ids: tuple[str, ...]
    alone: tuple[str, ...] = ()
    stop_after_s: float | None = None

    @property
    def seed(self) -> int:
        """Of every generator that tests do not seed: the same on both sides, another in every repeat."""
        return self.repeat - 1

    @property
    def order(self) -> Order:
        return order_of(self.repeat)


@dataclass(frozen=True)
class Ran:
    """What came of a leg: a result for each id, the wall time in seconds, how many ran in a process of their own."""

    results: Mapping[str, TestResult]
    seconds: float
    alone: int = 0


class Arms:
    """Runs both arms, each leg through ``work``, and tells ``record`` what was seen."""

    def __init__(self, work: Callable[[Leg], Ran], record: Recorder, *, repeats: int) -> None:
        self._work, self._record, self._repeats = work, record, repeats
        self._arms: list[Arm] = []

    def run(self, chosen: Sequence[str]) -> list[Arm]:
        """Run both arms as often as it takes, at most ``repeats`` times; the runs that there were.

        First both once in the order of selection; then again in fresh places, with other seeds and in another order, so
        that a test which leans on luck or on another test changes its mind: the second time in reverse, from the third
        time on shuffled. Whether a test passes without those beside it is tried too: the second time on the base for
        ids whose file it cannot collect, the third time on both sides for the first few fail-to-pass ids.
        """
        asked = self._record.asked
        first = self._leg(Leg("reference", 1, tuple(chosen), stop_after_s=asked.budget_s))
        if not any(r.outcome is Outcome.PASSED for r in first.values()):
            return self._arms
        if authored.faulty(asked.authored, self._record.facts().tests, ()):
            return self._arms
        # What the reference fails is run on the base too: a test that only the base passes shows inverted sides.
        reached = tuple(i for i in chosen if first[i].outcome is not Outcome.MISSING)
        base = self._leg(Leg("nop", 1, reached))
        for repeat in range(2, self._repeats + 1):
            facts = self._record.facts()
            now = sort(facts)
            if settled(facts, now):
                break
            self._again(now, repeat, {i for i, r in base.items() if r.failure is Failure.COLLECTION})
        return self._arms

    def _again(self, now: Sorted, repeat: int, uncollected: Collection[str]) -> None:
        ids = self._wanted(now, repeat)
        suspects = [i for i in now.suspects if i not in ids]
        few = now.fail_to_pass[:ALONE_LIMIT] if repeat == 3 else ()
        self._leg(Leg("reference", repeat, ordered([*ids, *suspects], repeat), few))
        if repeat == 2:
            few = tuple(i for i in now.fail_to_pass if i in uncollected)[:UNCOLLECTED_LIMIT]
        if ids:
            self._leg(Leg("nop", repeat, ordered(ids, repeat), few))

    def _wanted(self, now: Sorted, repeat: int) -> list[str]:
        """The ids of one more repeat: those that still count, and some that have changed their mind, for their rate."""
        counting = bool(now.fail_to_pass) or by_speed(self._record.asked)
        kept = now.kept if counting else []
        unstable = [i for i in now.flaky if self._record.runs(i) == (repeat - 1, repeat - 1)]
        return [*kept, *unstable[:UNSTABLE_LIMIT]]

    def _leg(self, leg: Leg) -> Mapping[str, TestResult]:
        done = self._work(leg)
        (self._record.nop if leg.arm == "nop" else self._record.reference)(done.results)
        seen = Counter(Arm.column(r.outcome) for r in done.results.values())
        self._arms.append(
            Arm(
                arm=leg.arm,
                repeat=leg.repeat,
                passed=seen["passed"],
                failed=seen["failed"],
                other=seen["other"],
                seconds=done.seconds,
                seed=leg.seed,
                order=leg.order,
                alone=done.alone,
            )
        )
        return done.results


def order_of(repeat: int) -> Order:
    """The order in which the ids of a repeat are run."""
    return "selected" if repeat == 1 else "reversed" if repeat == 2 else "shuffled"


def ordered(ids: Sequence[str], repeat: int) -> tuple[str, ...]:
    """``ids`` in the order of a repeat."""
    found = list(ids)
    if order_of(repeat) == "reversed":
        found.reverse()
    elif order_of(repeat) == "shuffled":
        random.Random(repeat).shuffle(found)
    return tuple(found)
