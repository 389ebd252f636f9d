"""Is A better than B? Two runs of the same tasks, compared task by task.

Tasks differ far more than agents do, so only what happens on the same task is compared. The difference of shares is
over all tasks of both; its interval is Agresti and Min's (2005, "Simple improved confidence intervals for comparing
matched proportions"), with a task's mean in place of one trial. The test is the exact one of McNemar where each task
was attempted once, else a sign flip test over tasks (Fisher 1935). Answers of more than one comparison are corrected by
Holm (1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from smith.records.base import Record
from smith.score.intervals import geometric_mean
from smith.score.shares import Z
from smith.score.speedups import Ratio, geomean_over
from smith.score.trials import Task

LEVEL = 0.05
POWER_Z = 0.8416212335729143
"""The 80 % quantile of the normal distribution."""


class Told(StrEnum):
    """What a comparison tells."""

    FIRST = "first"
    """The first is better."""
    SECOND = "second"
    """The second is better."""
    NOTHING = "nothing"
    """No difference can be told with so many tasks."""


class Comparison(Record):
    """The second run against the first. ``difference`` is the second's share minus the first's."""

    tasks: int
    attempts: tuple[int, int]
    first: float
    second: float
    difference: float
    low: float
    high: float
    only_first: int
    """Tasks that the first solved more often."""
    only_second: int
    same: int
    p_value: float
    """Two-sided; corrected where several comparisons are made."""
    test: str
    told: Told
    tasks_needed: int | None
    """How many tasks would show a difference of the size seen at the 5 % level with a power of 80 %; null where none
    was seen."""
    speed: Ratio | None
    """How many times as fast the second's solutions are as the first's, over tasks that both solved and were timed."""
    usd_difference: float


def compare(first: Sequence[Task], second: Sequence[Task]) -> Comparison:
    """Compare two runs of the same tasks in the same order. Raises :class:`ValueError` where they are not the same."""
    if [t.id for t in first] != [t.id for t in second] or not first:
        raise ValueError("only the same tasks can be compared")
    differences = [b.share - a.share for a, b in zip(first, second, strict=True)]
    n = len(differences)
    mean = sum(differences) / n
    low, high, variance = paired_interval(differences)
    once = all(len(task.trials) == 1 for task in (*first, *second))
    p_value, test = (_mcnemar(differences), "McNemar, exact") if once else _sign_flips(_whole(first, second))
    return Comparison(
        tasks=n,
        attempts=(len(first[0].trials), len(second[0].trials)),
        first=sum(t.share for t in first) / n,
        second=sum(t.share for t in second) / n,
        difference=mean,
        low=low,
        high=high,
        only_first=sum(d < 0 for d in differences),
        only_second=sum(d > 0 for d in differences),
        same=sum(d == 0 for d in differences),
        p_value=p_value,
        test=test,
        told=_told(p_value, mean),
        tasks_needed=math.ceil((Z + POWER_Z) ** 2 * variance / mean**2) if mean else None,
        speed=_speed(first, second),
        usd_difference=(_usd(second) - _usd(first)) / 1e6,
    )


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same comparisons with p-values by Holm's procedure: that any at all is wrongly told stays at 5 %."""
    order = sorted(range(len(comparisons)), key=lambda i: comparisons[i].p_value)
    found = list(comparisons)
    before = 0.0
    for rank, i in enumerate(order):
        before = max(before, min(1.0, (len(order) - rank) * comparisons[i].p_value))
        found[i] = comparisons[i].model_copy(
            update={"p_value": before, "told": _told(before, comparisons[i].difference)}
        )
    return found


def _told(p_value: float, difference: float) -> Told:
    if p_value >= LEVEL or difference == 0:
        return Told.NOTHING
    return Told.SECOND if difference > 0 else Told.FIRST


def paired_interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """Agresti and Min's interval: two pairs more, of which half a pair favours each side; and the variance."""
    n = len(differences) + 2
    mean = sum(differences) / n
    variance = (sum(d * d for d in differences) + 1) / n - mean * mean
    half = Z * math.sqrt(variance / n)
    return max(-1.0, mean - half), min(1.0, mean + half), variance


def _mcnemar(differences: Sequence[float]) -> float:
    from scipy.stats import binomtest

    won, lost = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return float(binomtest(won, won + lost).pvalue) if won + lost else 1.0


def _whole(first: Sequence[Task], second: Sequence[Task]) -> list[int]:
    """The differences of shares as whole numbers, over the least common denominator of all numbers of attempts."""
    common = math.lcm(*(len(task.trials) for task in (*first, *second)))
    counts = [[task.solved * (common // len(task.trials)) for task in tasks] for tasks in (first, second)]
    return [b - a for a, b in zip(*counts, strict=True)]


def _sign_flips(differences: Sequence[int]) -> tuple[float, str]:
    """Whether so large a mean could come of differences whose signs are drawn: exact, two-sided.

    The differences are whole numbers (of attempts, over a common denominator), so the distribution of their sum under
    all signs comes task by task, in no more steps than tasks times the largest sum.
    """
    import numpy as np

    told = [abs(d) for d in differences if d]
    most = sum(told)
    chances = np.zeros(most + 1)  # of the sum of those that are positive
    chances[0] = 1.0
    for weight in told:
        shifted = np.concatenate([np.zeros(weight), chances[: most + 1 - weight]])
        chances = (chances + shifted) / 2
    positive = max(sum(d for d in differences if d > 0), -sum(d for d in differences if d < 0))
    return min(1.0, 2.0 * float(chances[positive:].sum())), "sign flips, exact"


def _speed(first: Sequence[Task], second: Sequence[Task]) -> Ratio | None:
    both = [(a.speedups(), b.speedups()) for a, b in zip(first, second, strict=True)]
    ratios = [geometric_mean(b) / geometric_mean(a) for a, b in both if a and b]
    return geomean_over(ratios) if ratios else None


def _usd(tasks: Sequence[Task]) -> int:
    return sum(trial.usd_micros for task in tasks for trial in task.trials)
