"""pass@k, the chance that one of k attempts solves a task."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smith.score.shares import Mean, mean_over_tasks
from smith.score.trials import Task


def pass_at_k(attempts: int, solved: int, k: int) -> float:
    """The unbiased estimate from ``solved`` of ``attempts`` (Chen et al. 2021, "Evaluating Large Language Models
    Trained on Code"). Raises :class:`ValueError` where there are fewer than ``k`` attempts."""
    if not 0 <= solved <= attempts or not 1 <= k <= attempts:
        raise ValueError(f"pass@{k} of {solved} in {attempts}")
    return 1.0 - math.comb(attempts - solved, k) / math.comb(attempts, k)


def pass_at(tasks: Sequence[Task]) -> dict[int, Mean]:
    """pass@k over all tasks for k of 1, 2, 4, 8, ... and the number of attempts; a missing attempt has not solved."""
    most = min((len(task.trials) for task in tasks), default=0)
    ks = sorted({*(1 << power for power in range(most.bit_length()) if 1 << power <= most), *([most] if most else [])})
    return {k: mean_over_tasks([pass_at_k(len(t.trials), t.solved, k) for t in tasks], max(1, most // k)) for k in ks}
