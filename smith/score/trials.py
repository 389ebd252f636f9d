"""What scores are made of: one trial an attempt, and what is known of its task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from smith.records.grade import GradeVerdict


@dataclass(frozen=True)
class Trial:
    """One planned attempt. ``verdict`` is None where there is no evidence: it counts as not solved."""

    verdict: GradeVerdict | None = None
    speedup: float | None = None
    """How many times as fast as the baseline, where that was measured."""
    usd_micros: int = 0
    """Charged, in millionths of a dollar."""
    tokens: int = 0
    seconds: float = 0.0
    """Wall time of the attempt and its grading."""

    @property
    def solved(self) -> bool:
        return self.verdict is GradeVerdict.SOLVED


@dataclass(frozen=True)
class Task:
    """A task of the panel with every attempt that was planned at it."""

    id: str
    trials: Sequence[Trial]
    expert: float | None = None
    """The reference's measured speed-up; None for a task that is not about speed."""
    strata: Mapping[str, str] = field(default_factory=dict)
    """What it belongs to, by dimension: kind, language, device, size, merged."""

    @property
    def solved(self) -> int:
        """How many attempts solved it."""
        return sum(trial.solved for trial in self.trials)

    @property
    def share(self) -> float:
        """The share of attempts that solved it."""
        return self.solved / len(self.trials)

    def speedups(self) -> list[float]:
        """The measured speed-ups of attempts that solved it."""
        return [trial.speedup for trial in self.trials if trial.solved and trial.speedup is not None]
