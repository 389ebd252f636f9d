"""Sealed evidence: what the graded attempts of one run say about one card, with nothing of where they ran.

Its file is named by the SHA-256 of its bytes and only ever added. It holds ratios, never times of a clock.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from smith.records.base import Document, Name, Oid, Record, TaskId
from smith.records.card import CardId, DeviceName, Digest, Effect
from smith.records.grade import Count, GradeVerdict
from smith.records.receipt import Answer

Code = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
"""A reason's code. Agents are shown it, so it is no free text."""


class UseOutcome(StrEnum):
    """What became of one use of a lever."""

    WIN = "win"
    LOSS = "loss"
    NO_EFFECT = "no_effect"


class UseRead(StrEnum):
    """Whether the agent of a use had read the card, where that is known."""

    CITED = "cited"
    """It was shown the card and says that it used it."""
    SHOWN = "shown"
    NOT_SHOWN = "not_shown"


class CaseRatio(Record):
    """One workload case: baseline by candidate, with its interval."""

    case: str
    ratio: float = Field(gt=0)
    low: float = Field(gt=0)
    high: float = Field(gt=0)


class Speed(Record):
    """A measured speed-up as graded, without the times that it was made of."""

    ratio: float = Field(gt=0)
    low: float = Field(gt=0)
    high: float = Field(gt=0)
    worst: float = Field(gt=0)
    rounds: int
    noise_low: float
    noise_high: float
    answer: Answer | None = None
    cases: tuple[CaseRatio, ...] = ()


class Control(Record):
    """The attempt of the control run at the same task with the same number."""

    verdict: GradeVerdict
    grade_sha256: Digest
    patch_sha256: Digest


class Use(Record):
    """One graded attempt whose patch pulls the lever, or that cites the card."""

    task: TaskId
    tree: Oid
    attempt: int = Field(ge=1)
    device: DeviceName
    verdict: GradeVerdict
    reasons: tuple[Code, ...] = ()
    """Codes of the grade's reasons; their details may name places."""
    outcome: UseOutcome
    fail_to_pass: Count
    pass_to_pass: Count
    speed: Speed | None = None
    control: Control | None = None
    patch_sha256: Digest
    grade_sha256: Digest
    attempt_sha256: Digest
    receipt: Oid
    """Blob of the receipt that the panel pins for this task and device."""
    read: UseRead | None = Field(default=None, exclude_if=lambda read: read is None)
    """Null where it is not known: the run showed no cards."""
    pulled: bool = Field(default=True, exclude_if=bool)
    """Whether the patch pulls the lever. Where it does not, the use says what reading the card led to, and nothing of
    the lever."""

    @model_validator(mode="after")
    def _uses_it(self) -> Use:
        if not self.pulled and self.read is not UseRead.CITED:
            raise ValueError("a use pulls the lever, or cites the card")
        return self


class Evidence(Document):
    """What one run says about one card."""

    card: CardId
    founding: bool
    """Whether the card was made from it: its wins are at the card's own tasks."""
    run: Digest
    """Of the run's configuration."""
    control_run: Digest | None = None
    again: Digest | None = Field(default=None, exclude_if=lambda digest: digest is None)
    """The evidence of which winning patches were measured again, on another day or machine. Such uses change no effect
    and no posterior: the same patch is no new trial."""
    panel: Name
    agent: str
    model: str | None = None
    toolchain: dict[str, str] = {}
    """Versions of what compiles kernels, as the grades or the receipts name them."""
    uses: tuple[Use, ...] = Field(min_length=1)
    effects: tuple[Effect, ...] = ()
    """What the uses come to, a device each; checked against them."""
