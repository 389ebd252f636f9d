"""From raw times to a speed-up: the same arithmetic when it is measured and when a receipt is checked again."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from smith.records.receipt import TimedCase, Timing
from smith.score.intervals import geometric_mean, median_ratio

SAME = 0.005
"""Figures that differ by less, relatively, are the same: another release of a library may draw other resamples."""
Times = Mapping[str, Sequence[float]]
"""Nanoseconds by case, one a round."""


def summarise(baseline: Times, candidate: Times, *, method: str, device: str) -> Timing:
    """The speed-up of ``candidate``, case by case and over all, and the noise of the baseline against itself."""
    kept = {c: ([round(t, 1) for t in baseline[c]], [round(t, 1) for t in candidate[c]]) for c in baseline}
    speed = {c: [b / s for b, s in zip(*sides, strict=True)] for c, sides in kept.items()}
    noise = {c: [b / n for b, n in itertools.pairwise(sides[0])] for c, sides in kept.items()}
    cases = []
    for name, ratios in speed.items():
        ratio, low, high = map(_r, median_ratio(ratios))
        before, after = kept[name]
        cases.append(
            TimedCase(case=name, ratio=ratio, low=low, high=high, baseline_ns=tuple(before), candidate_ns=tuple(after))
        )
    _, low, high = median_ratio(_by_round(speed))
    _, noise_low, noise_high = median_ratio(_by_round(noise))
    return Timing(
        method=method,
        device=device,
        rounds=len(next(iter(speed.values()))),
        noise_low=_r(noise_low),
        noise_high=_r(noise_high),
        cases=tuple(cases),
        geomean=_r(geometric_mean([c.ratio for c in cases])),
        low=_r(low),
        high=_r(high),
        worst=min(c.ratio for c in cases),
    )


def again(timing: Timing) -> Timing | None:
    """``timing`` worked out anew from its raw samples; None where it has none, or such as no measurement gives."""
    before = {case.case: case.baseline_ns for case in timing.cases}
    after = {case.case: case.candidate_ns for case in timing.cases}
    rounds = {len(times) for times in (*before.values(), *after.values())}
    if len(before) != len(timing.cases) or len(rounds) != 1 or rounds.pop() < 2:
        return None
    if not all(0 < ns < float("inf") for times in (*before.values(), *after.values()) for ns in times):
        return None
    return summarise(before, after, method=timing.method, device=timing.device)


def _by_round(ratios: Mapping[str, Sequence[float]]) -> list[float]:
    """The geometric mean over cases of each round."""
    return [geometric_mean(values) for values in zip(*ratios.values(), strict=True)]


def _r(value: float) -> float:
    return round(value, 4)
