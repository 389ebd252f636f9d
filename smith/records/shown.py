"""What of the knowledge base the attempts of a run were shown, and what they said that they used."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from smith.records.base import Document, Record, TaskId
from smith.records.card import CardId, Digest


class Arm(StrEnum):
    """What an attempt was given."""

    SHOWN = "shown"
    COLD = "cold"
    """There were cards for its task, and it was not shown them."""
    NOTHING = "nothing"
    """There was no card for its task."""


class FrozenCard(Record):
    """A card as it was chosen for a task when the run began."""

    card: CardId
    file_sha256: Digest
    """Of the card's file."""
    why: str
    text: str
    """All that an agent is shown of it."""


class TaskCards(Record):
    """The cards for one task."""

    device: str
    """The family of devices that they were chosen for."""
    cards: tuple[FrozenCard, ...] = ()
    refused: int = 0
    """Cards of the task's classes of operators that are not for it."""


class RunCards(Document):
    """``knowledge.json`` of a run: what was chosen when it began, so that a resume shows the same."""

    tasks: dict[TaskId, TaskCards]


class RunKnowledge(Record):
    """How a run uses the knowledge base."""

    mode: Literal["on", "ab"]
    seed: int = Field(ge=0)
    """Of the arms."""
    cards_sha256: Digest
    """Of ``knowledge.json``."""


class ShownCard(Record):
    """A card by its digests."""

    card: CardId
    file_sha256: Digest
    text_sha256: Digest


class Told(Record):
    """What one attempt was shown, and what of it the agent cited."""

    arm: Arm
    shown: tuple[ShownCard, ...] = ()
    withheld: tuple[ShownCard, ...] = ()
    """In the arm ``cold``: what the other arm was shown."""
    prompt_sha256: Digest | None = None
    """Of the part of the instruction that shows the cards."""
    cited: tuple[CardId, ...] = ()
    """Cards that were shown and that the agent named in its file ``CITED``, sorted."""
