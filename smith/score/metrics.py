"""Scores of a run: every planned attempt of the panel counts; a missing one is not solved and is shown as missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from smith.records.base import Record
from smith.score.passk import pass_at
from smith.score.shares import Mean, Share, mean_over_tasks, wilson
from smith.score.speedups import SpeedScores, speed_scores
from smith.score.trials import Task


class Costs(Record):
    """What was used, over all attempts. What one solved task cost is null where none was solved."""

    usd: float
    tokens: int
    seconds: float
    usd_per_solved_task: float | None
    tokens_per_solved_task: float | None
    seconds_per_attempt: float


class Stratum(Record):
    """Some of the tasks: those with one value in one dimension."""

    tasks: int
    solved: Mean


class Scores(Record):
    """The scores of a run."""

    solved: Share
    """Attempts that solved their task, over all attempts of the panel. The interval takes attempts for independent,
    which those at one task are not: that of ``pass_at`` does not."""
    tasks_solved: Share
    """Tasks that at least one attempt solved."""
    pass_at_1: float
    """Mean over tasks of the share of solving attempts (unbiased pass@k for k=1)."""
    pass_at: dict[int, Mean] = {}
    """pass@k by k."""
    verdicts: dict[str, int]
    missing: int
    speedup_geomean: float | None
    """Geometric mean over solved attempts with a measured speed-up; null where there is none."""
    speedup_tasks: int
    """Tasks with such an attempt."""
    speed: SpeedScores | None = None
    """Null where no task of the panel is about speed."""
    costs: Costs | None = None
    strata: dict[str, dict[str, Stratum]] = {}
    """pass@1 by dimension (kind, language, device, size, merged) and value; a task of two languages is in both."""


def scores(tasks: Sequence[Task]) -> Scores:
    """The scores of a run with these tasks."""
    trials = [trial for task in tasks for trial in task.trials]
    verdicts = Counter(trial.verdict.value for trial in trials if trial.verdict is not None)
    passes = pass_at(tasks)
    speed = speed_scores(tasks)
    return Scores(
        solved=wilson(sum(t.solved for t in trials), len(trials)),
        tasks_solved=wilson(sum(task.solved > 0 for task in tasks), len(tasks)),
        pass_at_1=passes[1].mean if passes else 0.0,
        pass_at=passes,
        verdicts=dict(sorted(verdicts.items())),
        missing=sum(trial.verdict is None for trial in trials),
        speedup_geomean=speed.geomean.ratio if speed and speed.geomean else None,
        speedup_tasks=speed.geomean.tasks if speed and speed.geomean else 0,
        speed=speed,
        costs=_costs(tasks),
        strata=_strata(tasks),
    )


def _costs(tasks: Sequence[Task]) -> Costs:
    trials = [trial for task in tasks for trial in task.trials]
    usd, tokens = sum(t.usd_micros for t in trials) / 1e6, sum(t.tokens for t in trials)
    seconds = sum(t.seconds for t in trials)
    solved = sum(task.solved > 0 for task in tasks)
    done = sum(trial.verdict is not None for trial in trials)
    return Costs(
        usd=usd,
        tokens=tokens,
        seconds=round(seconds, 2),
        usd_per_solved_task=usd / solved if solved else None,
        tokens_per_solved_task=tokens / solved if solved else None,
        seconds_per_attempt=round(seconds / done, 2) if done else 0.0,
    )


def _strata(tasks: Sequence[Task]) -> dict[str, dict[str, Stratum]]:
    found: dict[str, dict[str, list[Task]]] = {}
    for task in tasks:
        for dimension, values in task.strata.items():
            for value in values.split(","):
                found.setdefault(dimension, {}).setdefault(value, []).append(task)
    return {
        dimension: {
            value: Stratum(
                tasks=len(some), solved=mean_over_tasks([t.share for t in some], min(len(t.trials) for t in some))
            )
            for value, some in sorted(values.items())
        }
        for dimension, values in found.items()
    }
