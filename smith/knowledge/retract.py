"""Taking a card back: it stays, with why and with what refutes it, so that nobody finds it again."""

from __future__ import annotations

from smith.errors import BadInput
from smith.knowledge.base import Known
from smith.knowledge.cards import CardFile, save
from smith.knowledge.forbidden import forbidden
from smith.paths import Layout
from smith.records.card import Card, Status
from smith.records.sealed import UseOutcome


def retract(layout: Layout, known: Known, reason: str) -> CardFile:
    """Mark a card as retracted in the work tree, with the evidence that holds uses which did not win.

    Raises :class:`BadInput` for a card that is retracted, or a reason that no card may give.
    """
    card = known.file.card
    if card.status is Status.RETRACTED:
        raise BadInput(f"{card.id} is retracted already: {card.reason}")
    said = " ".join(reason.split())
    if found := next(forbidden(said), None):
        raise BadInput(f"--reason holds what no card may say: {found.quoted!r} ({found.code})")
    against = sorted(
        sealed.digest
        for sealed in known.evidence
        if any(use.outcome is not UseOutcome.WIN for use in sealed.evidence.uses)
    )
    changed = {**card.model_dump(mode="json"), "status": "retracted", "reason": said, "refuted_by": against}
    file = CardFile(known.file.where, Card.parse(changed, f"--reason of {card.id}"), known.file.body)
    save(layout, file)
    return file
