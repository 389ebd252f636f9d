"""Cards and evidence that are made up, and runs whose attempts hand in patches that pull levers."""

from __future__ import annotations

from smith.knowledge.cards import SECTIONS, body_of, with_identifier
from smith.records.card import Aim, AppliesTo, Card

BODY = body_of({name: f"What there is to say of {name.lower()} in one sentence." for name in SECTIONS})


def card(lever: str = "loop-tiling", operator: str = "layout", **more: object) -> Card:
    """A card with its own identifier."""
    where = {"operator": operator, "languages": ("native",), "devices": ("cpu",)}
    made = Card.model_validate(
        {
            "id": "0" * 12,
            "title": f"{lever} for {operator}",
            "aim": Aim.SPEED,
            "lever": lever,
            "applies_to": AppliesTo.model_validate(where | dict(more.pop("applies_to", {}))),  # type: ignore[call-overload]
            **more,
        }
    )
    return with_identifier(made)
