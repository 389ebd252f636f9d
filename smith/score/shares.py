"""Shares with intervals of 95 %, of attempts that are alike within a task."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smith.records.base import Record

Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


class Share(Record):
    """A share with its Wilson interval of 95 %."""

    count: int
    total: int
    share: float
    low: float
    high: float


class Mean(Record):
    """The mean over ``tasks`` of a figure between 0 and 1, with its interval of 95 %."""

    mean: float
    low: float
    high: float
    tasks: int


def wilson(count: int, total: int, z: float = Z) -> Share:
    """The Wilson score interval (Wilson 1927) of ``count`` successes in ``total`` trials."""
    if total == 0:
        return Share(count=0, total=0, share=0.0, low=0.0, high=1.0)
    low, high = _score_interval(count / total, total, z)
    low, high = 0.0 if count == 0 else low, 1.0 if count == total else high
    return Share(count=count, total=total, share=count / total, low=low, high=high)


def mean_over_tasks(values: Sequence[float], attempts: int = 1) -> Mean:
    """The mean of one figure a task, each between 0 and 1, with an interval that respects tasks as clusters.

    Attempts at one task are alike, so they are no independent trials. The interval is Wilson's with the effective
    sample size of a clustered design (Korn and Graubard 1998): as many independent trials as would have the variance
    that the tasks show, at most ``attempts`` a task and never fewer than tasks. With one attempt a task it is the
    Wilson interval itself; with more, Student's t takes the place of the normal distribution.
    """
    tasks = len(values)
    if tasks == 0:
        return Mean(mean=0.0, low=0.0, high=1.0, tasks=0)
    p = sum(values) / tasks
    spread = sum((v - p) ** 2 for v in values) / tasks
    binary = all(v in (0.0, 1.0) for v in values)
    if p in (0.0, 1.0):
        size = float(tasks)
    else:
        size = min(tasks * p * (1 - p) / spread if spread else math.inf, float(tasks * attempts))
    low, high = _score_interval(p, size, Z if binary or tasks < 2 else _t(tasks - 1))
    return Mean(mean=p, low=0.0 if p == 0 else low, high=1.0 if p == 1 else high, tasks=tasks)


def _score_interval(p: float, n: float, z: float) -> tuple[float, float]:
    denominator = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / denominator
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / denominator
    return max(0.0, centre - half), min(1.0, centre + half)


def _t(degrees: int) -> float:
    # scipy takes a third of a second to import; only runs with several attempts a task need it.
    from scipy.stats import t

    return float(t.ppf(0.975, degrees))
