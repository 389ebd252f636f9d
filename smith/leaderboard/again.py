"""An entry's figures from grades that were made again, beside those that were sealed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from smith.errors import RecordError
from smith.evaluate.regrade import new_grade
from smith.leaderboard.entry import Entry
from smith.leaderboard.figures import figures_of, tasks_of_entry
from smith.leaderboard.receipts import PinnedReceipts
from smith.records.base import Record
from smith.records.grade import Grade, GradeVerdict
from smith.score.metrics import scores

_COSTS = frozenset({"usd", "tokens", "seconds", "usd_per_solved_task", "tokens_per_solved_task"})
"""What grading again says nothing of."""


class FigureAgain(Record):
    """One figure, as sealed and from the new grades."""

    figure: str
    sealed: float | None
    now: float | None


def figures_again(entry: Entry, save: Path, receipts: PinnedReceipts) -> list[FigureAgain]:
    """Every figure of an entry but its costs, with the grades in ``save`` in place of the sealed ones.

    An attempt that could not be graded again keeps its grade.
    """
    now = []
    for state in entry.states:
        try:
            grade = Grade.load(new_grade(save, state.task, state.number))
        except RecordError:
            now.append(state)
            continue
        now.append(state if grade.verdict is GradeVerdict.INFRA else replace(state, grade=grade))
    before, after = (
        {f.figure: f.value for f in figures_of(scores(tasks_of_entry(entry.config, states, receipts)))}
        for states in (entry.states, now)
    )
    names = [name for name in dict.fromkeys((*before, *after)) if name not in _COSTS]
    return [FigureAgain(figure=name, sealed=before.get(name), now=after.get(name)) for name in names]
