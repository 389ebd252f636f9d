"""Figures over attempts. Every attempt of the panel counts; a missing one is not solved and is shown as missing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smith.records.base import Record
from smith.records.grade import Grade, GradeVerdict


class Share(Record):
    """A share with its Wilson interval of 95 %."""

    count: int
    total: int
    share: float
    low: float
    high: float


class Scores(Record):
    """The scores of a run."""

    solved: Share
    """Attempts that solved their task, over all attempts of the panel."""
    tasks_solved: Share
    """Tasks that at least one attempt solved."""
    pass_at_1: float
    """Mean over tasks of the share of solving attempts (unbiased pass@k for k=1)."""
    verdicts: dict[str, int]
    missing: int
    speedup_geomean: float | None
    """Geometric mean over solved attempts with a measured speed-up; null where there is none."""
    speedup_tasks: int


def wilson(count: int, total: int, z: float = 1.959963984540054) -> Share:
    """The Wilson score interval (Wilson 1927) of ``count`` successes in ``total`` trials."""
    if total == 0:
        return Share(count=0, total=0, share=0.0, low=0.0, high=1.0)
    p = count / total
    denominator = 1 + z * z / total
    centre = (p + z * z / (2 * total)) / denominator
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / denominator
    low = 0.0 if count == 0 else max(0.0, centre - half)
    high = 1.0 if count == total else min(1.0, centre + half)
    return Share(count=count, total=total, share=p, low=low, high=high)


def scores(by_task: Sequence[Sequence[Grade | None]]) -> Scores:
    """The scores of a run: one sequence of attempts a task, None where an attempt is missing."""
    grades = [g for attempts in by_task for g in attempts]
    solved = [g for g in grades if g is not None and g.verdict is GradeVerdict.SOLVED]
    verdicts: dict[str, int] = {}
    for graded in grades:
        if graded is not None:
            verdicts[graded.verdict.value] = verdicts.get(graded.verdict.value, 0) + 1
    shares = [_share_solved(attempts) for attempts in by_task if attempts]
    ratios = [g.speedup.geomean for g in solved if g.speedup is not None]
    return Scores(
        solved=wilson(len(solved), len(grades)),
        tasks_solved=wilson(sum(1 for s in shares if s > 0), len(by_task)),
        pass_at_1=sum(shares) / len(shares) if shares else 0.0,
        verdicts=dict(sorted(verdicts.items())),
        missing=sum(1 for g in grades if g is None),
        speedup_geomean=math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None,
        speedup_tasks=len(ratios),
    )


def _share_solved(attempts: Sequence[Grade | None]) -> float:
    return sum(1 for g in attempts if g is not None and g.verdict is GradeVerdict.SOLVED) / len(attempts)
