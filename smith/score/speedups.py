"""Figures of speed over the tasks that are about speed: a task that was not solved is one that got no faster."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smith.records.base import Record
from smith.score.intervals import geometric_mean
from smith.score.shares import Mean, mean_over_tasks
from smith.score.trials import Task

THRESHOLDS = (0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0)
"""The p of fast_p."""
REACHED = 0.95
"""The share of the reference's speed-up that counts as having reached it."""


class Ratio(Record):
    """A geometric mean of ratios over ``tasks`` with its interval of 95 %; null where too few tell."""

    ratio: float
    low: float | None
    high: float | None
    tasks: int


class SpeedScores(Record):
    """How fast the solutions are. Every figure is over ``timed`` tasks, but where it says otherwise."""

    timed: int
    """Tasks whose reference was measured to be faster."""
    fast_p: dict[str, Mean]
    """Share of attempts that are correct and more than p times as fast as the baseline, by p (KernelBench, Ouyang et
    al. 2025)."""
    reached: Mean
    """Share of attempts that reach 95 % of the reference's speed-up."""
    geomean: Ratio | None
    """Geometric mean of the speed-ups of attempts that solved, over the tasks with one."""
    geomean_all: Ratio
    """The same over all timed tasks, where an attempt that did not solve counts as 1: nobody would merge it."""
    worst: float | None
    """The smallest speed-up of an attempt that solved."""
    expert_harmonic: float | None
    """Harmonic mean over the tasks with a solved attempt of speed-up by the reference's speed-up."""


def speed_scores(tasks: Sequence[Task]) -> SpeedScores | None:
    """Figures of the tasks that have a reference's speed-up; None where there are none."""
    timed = [task for task in tasks if task.expert is not None]
    if not timed:
        return None
    attempts = min(len(task.trials) for task in timed)

    def share(wanted: float, of_expert: bool = False) -> Mean:
        values = []
        for task in timed:
            least = wanted * (task.expert or 1.0) if of_expert else wanted
            values.append(sum(s >= least if of_expert else s > least for s in task.speedups()) / len(task.trials))
        return mean_over_tasks(values, attempts)

    solved = [(task, task.speedups()) for task in timed if task.speedups()]
    every = [
        geometric_mean([t.speedup if t.solved and t.speedup is not None else 1.0 for t in task.trials])
        for task in timed
    ]
    ratios = [geometric_mean(found) / (task.expert or 1.0) for task, found in solved]
    return SpeedScores(
        timed=len(timed),
        fast_p={f"{p:g}": share(p) for p in THRESHOLDS},
        reached=share(REACHED, of_expert=True),
        geomean=geomean_over([geometric_mean(found) for _, found in solved]) if solved else None,
        geomean_all=geomean_over(every),
        worst=min((s for _, found in solved for s in found), default=None),
        expert_harmonic=len(ratios) / sum(1 / r for r in ratios) if ratios else None,
    )


def geomean_over(ratios: Sequence[float]) -> Ratio:
    """The geometric mean of one ratio a task; Student's interval of the mean of their logarithms."""
    logs = [math.log(r) for r in ratios]
    n = len(logs)
    middle = sum(logs) / n
    if n < 2:
        return Ratio(ratio=math.exp(middle), low=None, high=None, tasks=n)
    from scipy.stats import t

    half = float(t.ppf(0.975, n - 1)) * math.sqrt(sum((v - middle) ** 2 for v in logs) / (n - 1) / n)
    return Ratio(ratio=math.exp(middle), low=math.exp(middle - half), high=math.exp(middle + half), tasks=n)
