"""The data repository of the tiny task with one card in it that was learned elsewhere, and agents that can read."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from smith.freeze.bundle import Store
from smith.knowledge.cards import CardFile, body_of, path_of, save, with_identifier
from smith.paths import write_atomically
from smith.records.card import Aim, AppliesTo, Card
from smith.records.grade import Count, GradeVerdict
from smith.records.sealed import Control, Evidence, Use, UseOutcome
from tests.gateway.scripted_model import Asked, Say

SECRET = "every scale factor here is two"


def add_card(store: Store, *, task: str = "lab__other-3") -> Card:
    """A card about correctness with one win at ``task``, in the work tree."""
    card = with_identifier(
        Card(
            id="0" * 12,
            title="Scales are whole numbers",
            aim=Aim.CORRECTNESS,
            lever="whole-scales",
            applies_to=AppliesTo(operator="other", languages=("native",), devices=("cpu",)),
        )
    )
    body = body_of({"When": "Scaling.", "How": f"In this family {SECRET}.", "Verify": "Test it.", "Pitfalls": "None."})
    save(store.layout, CardFile(path_of(card), card, body))
    use = Use(
        task=task,
        tree="1" * 40,
        attempt=1,
        device="cpu",
        verdict=GradeVerdict.SOLVED,
        outcome=UseOutcome.WIN,
        fail_to_pass=Count(passed=1, total=1),
        pass_to_pass=Count(passed=0, total=0),
        control=Control(verdict=GradeVerdict.FAILED, grade_sha256="2" * 64, patch_sha256="3" * 64),
        patch_sha256="4" * 64,
        grade_sha256="5" * 64,
        attempt_sha256="6" * 64,
        receipt="7" * 40,
    )
    evidence = Evidence(card=card.id, founding=True, run="8" * 64, panel="other", agent="drawn", uses=(use,))
    data = evidence.dumps()
    write_atomically(store.layout.evidence / f"{hashlib.sha256(data).hexdigest()}.json", data)
    return card


def edit(factor: int) -> tuple[str, dict[str, Any]]:
    """The call that writes a factor into the tiny task."""
    return ("edit", {"path": "tiny/scale.py", "old": "return x", "new": f"return {factor} * x"})


def reader(asked: Asked) -> Say:
    """A model that knows no factor but the one that a card tells it, and says which card that was."""
    text = str(asked.turns[1]["content"])
    card = re.search(r"Card ([0-9a-f]{12})\.", text)
    if card is None or SECRET not in text:
        return Say(calls=(edit(3), ("submit", {})))
    cited = re.search(r"`(\S*CITED)`", text)
    assert cited is not None
    return Say(calls=(edit(2), ("bash", {"command": f"echo {card[1]} > {cited[1]}"}), ("submit", {})))


def stubborn(asked: Asked) -> Say:
    """A model that never minds what it is shown."""
    return Say(calls=(edit(2), ("submit", {})))
