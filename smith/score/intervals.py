"""Intervals of ratios measured in pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_ratio(ratios: Sequence[float], *, seed: int = 0) -> tuple[float, float, float]:
    """Median of paired ratios with a 95 % percentile bootstrap interval (Efron 1979), in log space.

    With fewer than three pairs, or where all are equal, the interval is the range of what was seen.
    """
    if not ratios or min(ratios) <= 0:
        raise ValueError("ratios must be positive, and there must be one")
    logs = [math.log(r) for r in ratios]
    middle = math.exp(median(logs))
    if len(logs) < 3 or max(logs) == min(logs):
        return middle, min(ratios), max(ratios)
    # scipy takes a third of a second to import; only timing needs it.
    import numpy as np
    from scipy.stats import bootstrap

    found = bootstrap(
        (np.asarray(logs),),
        np.median,
        confidence_level=0.95,
        n_resamples=4000,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    interval = found.confidence_interval
    return middle, math.exp(float(interval.low)), math.exp(float(interval.high))


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive values."""
    return math.exp(sum(math.log(v) for v in values) / len(values))


def contradiction(ratio: float, low: float, high: float, worst: float, cases: Sequence[float]) -> str:
    """What a speed-up says against itself: its interval, its cases (rounded to four digits each, as graded), the worst
    of them. Empty where it agrees."""
    if not low <= ratio <= high:
        return "the interval does not hold the speed-up"
    if cases:
        middle = geometric_mean(cases)
        if abs(middle - ratio) > 2e-3 * middle or abs(min(cases) - worst) > 2e-3 * worst:
            return f"the speed-up is {ratio:g}, and its cases come to {middle:.4g}"
    return ""
