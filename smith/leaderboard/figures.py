"""From the evidence of an entry to its tasks, scores and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from smith.evaluate.run import AttemptState
from smith.leaderboard.receipts import PinnedReceipts
from smith.records.attempt import RunConfig
from smith.records.leaderboard import Figure
from smith.report.evidence import trial_of
from smith.report.rows import figures
from smith.score.metrics import Scores
from smith.score.trials import Task, Trial

TOLERANCE = 1e-6
"""Relative; other versions of the libraries differ in the last digits."""


def tasks_of_entry(config: RunConfig, states: Sequence[AttemptState], receipts: PinnedReceipts) -> list[Task]:
    """Every task with its attempts, by id, and the reference's speed-up in the pinned receipt."""
    trials: dict[str, list[Trial]] = {}
    devices: dict[str, str] = {}
    for state in states:
        trials.setdefault(state.task, []).append(trial_of(state))
        if state.grade is not None:
            devices[state.task] = state.grade.device
    found = []
    for pinned in sorted(config.tasks, key=lambda t: t.id):
        device = devices.get(pinned.id, "")
        receipt = receipts.find(pinned, device)
        expert = receipt.timing.geomean if receipt is not None and receipt.timing is not None else None
        found.append(Task(id=pinned.id, trials=trials[pinned.id], expert=expert, strata={"device": device}))
    return found


def figures_of(scored: Scores) -> tuple[Figure, ...]:
    """Every figure of a run by name, as reports have them."""
    return tuple(Figure(**row) for row in figures(scored))


def unlike(sealed: Iterable[Figure], now: Iterable[Figure]) -> list[str]:
    """Names of figures that are not what the evidence comes to."""
    before, after = {f.figure: f for f in sealed}, {f.figure: f for f in now}
    return sorted(name for name in before.keys() | after.keys() if not _same(before.get(name), after.get(name)))


def _same(one: Figure | None, other: Figure | None) -> bool:
    if one is None or other is None:
        return False
    pairs = ((one.value, other.value), (one.low, other.low), (one.high, other.high))
    return one.tasks == other.tasks and all(_close(a, b) for a, b in pairs)


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-9)
