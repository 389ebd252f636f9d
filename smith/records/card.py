"""A card of the knowledge base: what a lever is and where it applies, and, in figures, what was measured of it.

What a card *states* is apart from what was *measured* of it, which lies in evidence files of its own
(:mod:`smith.records.sealed`): so two proposals about one card touch no common line.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from smith.records.base import Document, Record

CardId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12}$")]
"""Of what the card states: see :func:`smith.knowledge.cards.identifier`."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of a file's bytes."""

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+([_-][a-z0-9]+)*$", max_length=60)]

DeviceName = Annotated[str, StringConstraints(pattern=r"^[a-z]+(:[a-z0-9_]+)?$", max_length=60)]
"""``cpu``, ``interpreter:gfx942``, ``cuda:sm_90``. Agents are shown it, so it is no free text."""

Lever = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*(\+[a-z0-9]+(-[a-z0-9]+)*)*$", max_length=160)
]
"""Codes of what is done, sorted and joined by ``+`` where several are done together."""

Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+$", max_length=160)]


def _empty(value: Any) -> bool:
    return not value


class Aim(StrEnum):
    """What a lever is for."""

    SPEED = "speed"
    CORRECTNESS = "correctness"


class Status(StrEnum):
    """Whether a card may be used."""

    ACTIVE = "active"
    STALE = "stale"
    """To be measured again: its toolchain or a symbol that it relies on has gone."""
    RETRACTED = "retracted"
    """Refuted. Kept, with what refuted it, so that it is not found again."""


class Origin(StrEnum):
    """Where a use was made."""

    OWN = "own"
    """At a task (or a relative of it) whose win made the card."""
    OTHER = "other"


class AppliesTo(Record):
    """Where a lever applies. What is empty is not known to matter."""

    operator: Slug
    """A class of operators, as mining tells them (norm, gemm, layout, ...), or ``other``."""
    languages: tuple[Slug, ...] = Field(min_length=1)
    devices: tuple[Literal["cpu", "interpreter", "rocm", "cuda"], ...] = Field(min_length=1)
    """Families of devices on which it was measured."""
    toolchain: dict[Slug, Line] = Field(default={}, exclude_if=_empty)
    """Package to the versions for which it holds (``triton: ">=3.4,<4"``). No part of the identifier."""
    dtypes: tuple[Slug, ...] = Field(default=(), exclude_if=_empty)
    regime: str = Field(default="", max_length=120, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$", exclude_if=_empty)
    """Sizes or shapes, in words: ``rows shorter than a block``."""

    @model_validator(mode="after")
    def _sorted(self) -> AppliesTo:
        for name in ("languages", "devices", "dtypes"):
            given = getattr(self, name)
            if list(given) != sorted(set(given)):
                raise ValueError(f"{name} are sorted, each once")
        return self


class Effect(Record):
    """What using a lever gave, on one device, with an interval of 95 %."""

    measure: Literal["speedup", "solve_difference"]
    """``speedup``: geometric mean over tasks of baseline by candidate. ``solve_difference``: share solved with the
    lever less the share that the paired control solved."""
    value: float
    low: float
    high: float
    device: DeviceName
    tasks: int = Field(ge=1)
    uses: int = Field(ge=1)


class Counts(Record):
    """Uses by what became of them."""

    wins: int = Field(default=0, ge=0)
    losses: int = Field(default=0, ge=0)
    no_effects: int = Field(default=0, ge=0)

    @property
    def others(self) -> int:
        return self.losses + self.no_effects


class Figures(Record):
    """What was measured, written into the card by ``smith knowledge index --figures`` so that it can be read
    there."""

    evidence: tuple[Digest, ...]
    """The evidence that the figures are of, sorted; newer evidence may lie beside it."""
    effects: tuple[Effect, ...] = Field(default=(), exclude_if=_empty)
    uses: dict[Origin, Counts] = Field(default={}, exclude_if=_empty)
    cited: dict[Origin, Counts] = Field(default={}, exclude_if=_empty)
    """Attempts whose agent was shown the card and says that it used it, whether its patch pulls the lever or not."""


class Card(Document):
    """The front matter of a card; its text is beside it."""

    id: CardId
    title: Line
    aim: Aim
    lever: Lever
    applies_to: AppliesTo
    symbols: tuple[Line, ...] = Field(default=(), exclude_if=_empty)
    """What it relies on upstream: ``triton.language.dot``, ``owner/name:path::function``."""
    status: Status = Status.ACTIVE
    reason: str = Field(default="", max_length=400, exclude_if=_empty)
    """Why it is stale or retracted."""
    refuted_by: tuple[Digest, ...] = Field(default=(), exclude_if=_empty)
    """Evidence that speaks against it."""
    figures: Figures | None = Field(default=None, exclude_if=lambda figures: figures is None)

    @model_validator(mode="after")
    def _whole(self) -> Card:
        codes = self.lever.split("+")
        if codes != sorted(set(codes)):
            raise ValueError("the codes of a lever are sorted, each once")
        if (self.status is not Status.ACTIVE) != bool(self.reason):
            raise ValueError("a card that is stale or retracted says why, and no other does")
        return self
