"""Which tests are run on which side, how often, in which order and with which seed: until nothing is left to learn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from smith.parallel import Slots
from smith.records.receipt import Arm
from smith.records.results import Failure, Outcome, TestResult
from smith.validate.ahead import Ahead
from smith.validate.gate import Captured
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
    captured: Captured = field(default_factory=Captured)
    """Launches, where they were asked for."""


class Arms:
    """Runs both arms, each leg through ``work``, and tells ``record`` what was seen.

    With ``slots`` legs run side by side where there are free ones: those whose ids do not depend on each other, and
    those that follow where nothing unstable shows. What is recorded is the same as without, in the same order; a leg
    that was begun and turns out not to be the one that is wanted is dropped.
    """

    def __init__(
        self, work: Callable[[Leg], Ran], record: Recorder, *, repeats: int, slots: Slots | None = None
    ) -> None:
        self._record, self._repeats = record, repeats
        self._ahead = Ahead(work, slots)
        self._arms: list[Arm] = []
        self.captured = {"base": Captured(), "reference": Captured()}
        """Launches of the legs that count, by side."""

    def run(self, chosen: Sequence[str]) -> list[Arm]:
        """Run both arms as often as it takes, at most ``repeats`` times; the runs that there were.

        First both once in the order of selection; then again in fresh places, with other seeds and in another order, so
        that a test which leans on luck or on another test changes its mind: the second time in reverse, from the third
        time on shuffled. Whether a test passes without those beside it is tried too: the second time on the base for
        ids whose file it cannot collect, the third time on both sides for the first few fail-to-pass ids.
        """
        with self._ahead:
            return self._run(tuple(chosen))

    def _run(self, chosen: tuple[str, ...]) -> list[Arm]:
        asked = self._record.asked
        first, base = self._first(chosen)
        self._take(*first)
        if not any(r.outcome is Outcome.PASSED for r in first[1].results.values()):
            return self._arms
        if authored.faulty(asked.authored, self._record.facts().tests, ()):
            return self._arms
        # What the reference fails is run on the base too: a test that only the base passes shows inverted sides.
        reached = tuple(i for i in chosen if first[1].results[i].outcome is not Outcome.MISSING)
        leg = Leg("nop", 1, reached)
        if base is None or reached != chosen:
            base = self._ahead.do(leg)
        self._take(leg, base)
        uncollected = {i for i, r in base.results.items() if r.failure is Failure.COLLECTION}
        for repeat in range(2, self._repeats + 1):
            facts = self._record.facts()
            now = sort(facts)
            if settled(facts, now):
                break
            wanted = self._legs(now, repeat, uncollected)
            later = (self._legs(now, n, uncollected, after=n - repeat) for n in range(repeat + 1, self._repeats + 1))
            self._ahead.begin([*wanted, *(leg for legs in later for leg in legs)])
            for done in [(leg, self._ahead.do(leg)) for leg in wanted]:
                self._take(*done)
        return self._arms

    def _first(self, chosen: tuple[str, ...]) -> tuple[tuple[Leg, Ran], Ran | None]:
        """The first run of the reference; and that of the base, where it was run beside it and all of it counts.

        The seconds of that run of the reference say where it stops and which tests are affordable. Where they decide
        anything they must not be those of a machine that also ran the base: then it is run again by itself.
        """
        budget_s = self._record.asked.budget_s
        leg = Leg("reference", 1, chosen, stop_after_s=budget_s)
        beside = Leg("nop", 1, chosen, stop_after_s=budget_s)
        self._ahead.begin([leg, beside])
        is_beside = self._ahead.begun(beside)
        done = self._ahead.do(leg)
        if not is_beside:
            return (leg, done), None
        passes = any(r.outcome is Outcome.PASSED for r in done.results.values())
        base = self._ahead.do(beside) if passes else None
        if passes and not timeless(done.results.values(), budget_s):
            done = self._ahead.do(leg)
        # Where the base did not reach every test, it may be for want of time, of which it has more by itself.
        if base is not None and any(r.outcome is Outcome.MISSING for r in base.results.values()):
            base = None
        return (leg, done), base

    def _legs(self, now: Sorted, repeat: int, uncollected: Collection[str], *, after: int = 0) -> list[Leg]:
        """Both legs of a repeat; ``after`` so many further repeats in which no test changes its mind."""
        ids = self._wanted(now, repeat - after)
        suspects = [i for i in now.suspects if i not in ids]
        few = now.fail_to_pass[:ALONE_LIMIT] if repeat == 3 else ()
        legs = [Leg("reference", repeat, ordered([*ids, *suspects], repeat), few)]
        if repeat == 2:
            few = tuple(i for i in now.fail_to_pass if i in uncollected)[:UNCOLLECTED_LIMIT]
        return [*legs, Leg("nop", repeat, ordered(ids, repeat), few)] if ids else legs

    def _wanted(self, now: Sorted, repeat: int) -> list[str]:
        """The ids of one more repeat: those that still count, and some that have changed their mind, for their rate."""
        counting = bool(now.fail_to_pass) or by_speed(self._record.asked)
        kept = now.kept if counting else []
        unstable = [i for i in now.flaky if self._record.runs(i) == (repeat - 1, repeat - 1)]
        return [*kept, *unstable[:UNSTABLE_LIMIT]]

    def _take(self, leg: Leg, done: Ran) -> None:
        (self._record.nop if leg.arm == "nop" else self._record.reference)(done.results)
        self.captured["base" if leg.arm == "nop" else "reference"].join(done.captured)
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


def timeless(results: Iterable[TestResult], budget_s: float) -> bool:
    """Whether nothing that is decided from a first run hangs on how long its tests took: each was reached and ended
    within its limit, and all together are affordable."""
    some = list(results)
    late = any(r.outcome in (Outcome.MISSING, Outcome.TIMEOUT) for r in some)
    return not late and sum(r.seconds for r in some) <= budget_s / 2


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
