"""What interleaved timings say: faster, slower, the same, or nothing that this machine can resolve.

A block holds baseline, candidate and baseline again, so that each block gives a ratio of the candidate and a ratio of
the baseline against itself, taken under the same conditions. The interval of the median log ratio is a percentile
bootstrap over blocks (Efron 1979). What the baseline differs from itself bounds what a difference can mean (an A/A
test).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smith.records.receipt import Answer, TimedCase, Timing
from smith.score.intervals import geometric_mean, median_ratio

LEAST_BLOCKS = 5
"""Fewer give no interval worth the name."""
NARROW = 0.03
"""An interval reaching no further than this (as a log ratio: 3 %) on either side of its median is narrow enough."""
SMALLEST = 0.02
"""Differences below this (2 %) are never told from none: the layout of memory and code makes as much."""


@dataclass(frozen=True)
class Block:
    """Nanoseconds by case of one block: both legs of the baseline, and the candidate's between or beside them."""

    baselines: tuple[Mapping[str, float], Mapping[str, float]]
    candidate: Mapping[str, float]

    def speed(self, case: str) -> float:
        """How many times as fast the candidate is as the baseline (the geometric mean of its two legs)."""
        one, other = self.baselines
        return math.sqrt(one[case] * other[case]) / self.candidate[case]

    def noise(self, case: str) -> float:
        """The baseline against itself."""
        one, other = self.baselines
        return one[case] / other[case]


@dataclass(frozen=True)
class Interval:
    """A median ratio with its 95 % interval."""

    ratio: float
    low: float
    high: float

    @property
    def reach(self) -> float:
        """How far the interval goes from the median at most, as a log ratio."""
        return max(math.log(self.high / self.ratio), math.log(self.ratio / self.low))


@dataclass(frozen=True)
class Speed:
    """What some blocks say."""

    answer: Answer
    whole: Interval
    """Of the geometric mean over cases."""
    cases: Mapping[str, Interval]
    noise: Interval
    """Of the baseline against itself."""
    margin: float
    """The log ratio that a difference must exceed to be one."""

    @property
    def settled(self) -> bool:
        """Whether more blocks would only say it more exactly."""
        return self.answer is not Answer.UNRESOLVED


def speed_of(blocks: Sequence[Block]) -> Speed:
    """The answer of ``blocks``, which have the same cases. Raises :class:`ValueError` for none or for times of 0."""
    if not blocks:
        raise ValueError("no block was measured")
    names = list(blocks[0].candidate)
    cases = {name: Interval(*median_ratio([block.speed(name) for block in blocks])) for name in names}
    whole = Interval(*median_ratio([geometric_mean([block.speed(name) for name in names]) for block in blocks]))
    noise = Interval(*median_ratio([geometric_mean([block.noise(name) for name in names]) for block in blocks]))
    margin = max(SMALLEST, abs(math.log(noise.low)), abs(math.log(noise.high)))
    return Speed(_answer(len(blocks), whole, margin), whole, cases, noise, margin)


def _answer(blocks: int, whole: Interval, margin: float) -> Answer:
    if blocks < LEAST_BLOCKS:
        return Answer.UNRESOLVED
    low, high = math.log(whole.low), math.log(whole.high)
    if low > margin:
        return Answer.FASTER
    if high < -margin:
        return Answer.SLOWER
    # No difference was shown. That there is none is shown only where one would have been seen.
    if whole.reach <= NARROW and margin <= NARROW and abs(math.log(whole.ratio)) <= margin:
        return Answer.SAME
    return Answer.UNRESOLVED


def summarise(blocks: Sequence[Block], *, method: str, device: str, void: int = 0) -> Timing:
    """What a receipt keeps of ``blocks``: figures and raw samples. ``void`` blocks were left out."""
    blocks = [_kept(block) for block in blocks]
    speed = speed_of(blocks)
    cases = [
        TimedCase(
            case=name,
            ratio=_r(one.ratio),
            low=_r(one.low),
            high=_r(one.high),
            baseline_ns=tuple(leg[name] for block in blocks for leg in block.baselines),
            candidate_ns=tuple(block.candidate[name] for block in blocks),
        )
        for name, one in speed.cases.items()
    ]
    return Timing(
        method=method,
        device=device,
        rounds=len(blocks),
        void=void,
        answer=speed.answer,
        noise_low=_r(speed.noise.low),
        noise_high=_r(speed.noise.high),
        cases=tuple(cases),
        geomean=_r(geometric_mean([c.ratio for c in cases])),
        low=_r(speed.whole.low),
        high=_r(speed.whole.high),
        worst=min(c.ratio for c in cases),
    )


def again(timing: Timing) -> Timing | None:
    """``timing`` worked out anew from its raw samples; None where it has none, or such as no measurement gives."""
    names = [case.case for case in timing.cases]
    count = len(timing.cases[0].candidate_ns) if names else 0
    if not count or len(set(names)) != len(names):
        return None
    for case in timing.cases:
        if len(case.candidate_ns) != count or len(case.baseline_ns) != 2 * count:
            return None
        if not all(0 < round(ns, 1) < math.inf for ns in (*case.baseline_ns, *case.candidate_ns)):
            return None
    blocks = [
        Block(
            (
                {case.case: case.baseline_ns[2 * n] for case in timing.cases},
                {case.case: case.baseline_ns[2 * n + 1] for case in timing.cases},
            ),
            {case.case: case.candidate_ns[n] for case in timing.cases},
        )
        for n in range(count)
    ]
    return summarise(blocks, method=timing.method, device=timing.device, void=timing.void)


def _kept(block: Block) -> Block:
    """As a receipt holds it: figures that were worked out from more could not be worked out again."""
    one, other = ({case: round(ns, 1) for case, ns in leg.items()} for leg in block.baselines)
    return Block((one, other), {case: round(ns, 1) for case, ns in block.candidate.items()})


def _r(value: float) -> float:
    return round(value, 4)
