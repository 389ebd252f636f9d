"""A card as an agent reads it, and as a skill in a folder of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import yaml

from smith.knowledge.base import Known
from smith.knowledge.cards import SECTIONS
from smith.knowledge.prose import measured_lines
from smith.paths import write_atomically
from smith.records.card import Status

_CHARACTERS = 3.5
"""Of a token, rather too few: English prose has about four, code three."""
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024


def tokens_of(text: str) -> int:
    """About how many tokens a text is, rather too many. No tokenizer of any model is asked."""
    return math.ceil(len(text) / _CHARACTERS)


def render(known: Known) -> str:
    """One card for an agent: what it states, and what was measured. It advises and orders nothing."""
    card = known.file.card
    parts = [f"# {card.title}", f"Card {card.id}. Advice from what was measured elsewhere; check it on your task."]
    parts += [f"## {name}\n\n{known.file.section(name)}" for name in SECTIONS]
    parts.append("## Measured\n\n" + "\n".join(f"- {line}" for line in measured_lines(known)))
    return "\n\n".join(parts) + "\n"


def skill_name(known: Known) -> str:
    """The name of a card's skill: letters, digits and dashes, at most 64, and its own."""
    stem = Path(known.file.where).stem.replace("_", "-").replace("+", "-")
    operator = known.file.card.applies_to.operator.replace("_", "-")
    return f"{operator}-{stem}"[: _LONGEST_NAME - 13].strip("-") + f"-{known.file.card.id}"


def write_skills(cards: Iterable[Known], out: Path) -> list[Path]:
    """Write ``<name>/SKILL.md`` for every active card with evidence; gives what was written."""
    written = []
    for known in cards:
        card = known.file.card
        if card.status is not Status.ACTIVE or not known.evidence:
            continue
        name = skill_name(known)
        description = f"{card.title}. {' '.join(known.file.section('When').split())}"[:_LONGEST_DESCRIPTION]
        head = yaml.safe_dump(
            {"name": name, "description": description}, sort_keys=False, allow_unicode=True, width=100
        )
        path = out / name / "SKILL.md"
        write_atomically(path, f"---\n{head}---\n\n{render(known)}".encode())
        written.append(path)
    return written
