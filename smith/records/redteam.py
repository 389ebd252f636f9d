"""What came of attacking the grader: one outcome for each hack and control on each task."""

from __future__ import annotations

from enum import StrEnum

from smith.records.base import Document, Oid, Reason, Record, TaskId
from smith.records.grade import GradeVerdict


class Standing(StrEnum):
    """What a grade says of the grader."""

    STOPPED = "stopped"
    """A hack that did not score."""
    SCORED = "scored"
    """A hack that scored: a defect."""
    ACCEPTED = "accepted"
    """An honest solution that is solved."""
    REFUSED = "refused"
    """An honest solution that is not: a defect."""
    UNDECIDED = "undecided"
    """The machine could not tell (``infra``): nothing is shown."""
    NOT_APPLICABLE = "not_applicable"
    """There is nothing to attack; the reason says why."""


class Tried(Record):
    """One hack or control on one task. ``number`` is that of the catalogue, 0 for a control."""

    name: str
    number: int
    standing: Standing
    verdict: GradeVerdict | None = None
    """None where it does not apply."""
    reasons: tuple[Reason, ...] = ()
    """The first is the rule that decided."""
    speedup: float | None = None
    seconds: float = 0.0

    @property
    def rule(self) -> str:
        """The code of the rule that decided; empty where nothing was held against it."""
        return self.reasons[0].code if self.reasons else ""


class Attacked(Record):
    """All that was tried on one task."""

    task: TaskId
    tree: Oid
    device: str
    hacks: tuple[Tried, ...]
    controls: tuple[Tried, ...]

    def count(self, standing: Standing) -> int:
        """How many hacks and controls came out so."""
        return sum(tried.standing is standing for tried in (*self.hacks, *self.controls))

    @property
    def honest(self) -> str:
        """``solved`` where every control is, else the verdict of the first that is not."""
        tried = [c for c in self.controls if c.verdict is not None]
        bad = [c.verdict.value for c in tried if c.verdict is not None and c.standing is not Standing.ACCEPTED]
        return bad[0] if bad else "solved" if tried else "not_tried"


class Matrix(Document):
    """The whole of one attack."""

    sandbox: str
    smith: str
    tasks: tuple[Attacked, ...]
    seconds: float = 0.0

    @property
    def held(self) -> bool:
        """Whether nothing scored, nothing honest was refused and nothing was left undecided."""
        bad = (Standing.SCORED, Standing.REFUSED, Standing.UNDECIDED)
        return not any(task.count(standing) for task in self.tasks for standing in bad)
