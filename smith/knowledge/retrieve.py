"""Which cards are shown to an agent at a task: deterministic, each choice and each refusal with its reason.

By lineage nothing reaches a task that was learned at it or at a relative of it, and nothing that was learned at what is
held out reaches any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from smith.freeze.bundle import Bundle
from smith.freeze.lineages import lineage_of
from smith.knowledge.base import Known
from smith.knowledge.held_out import HeldOut
from smith.knowledge.posterior import posterior, total
from smith.knowledge.render import render, tokens_of
from smith.mine.signals import operators
from smith.records.candidate import Kind
from smith.records.card import Aim, Effect, Status
from smith.records.task import Variant

_OPERATOR, _RELATED = 4.0, 1.0
"""What the surest class of a task weighs, and any other that it is told to be of."""


@dataclass(frozen=True)
class Chosen:
    """A card with why it was chosen, its text for an agent, and how much of an agent's attention that takes."""

    known: Known
    score: float
    why: str
    text: str
    tokens: int


@dataclass(frozen=True)
class Retrieved:
    """What was chosen, in order, and why each other card of the task's classes was not."""

    task: str
    chosen: tuple[Chosen, ...]
    left_out: tuple[tuple[str, str], ...]
    """Identifier and reason, sorted."""


def retrieve(
    cards: Iterable[Known], bundle: Bundle, device: str, held_out: HeldOut, *, limit: int = 1, tokens: int = 1000,
    own: bool = False,
) -> Retrieved:  # fmt: skip
    """Choose at most ``limit`` cards of different levers for a task, of ``tokens`` together.

    ``device`` is the family that it is graded on; ``own`` allows what was learned at the task itself, for tasks that
    are not held out.
    """
    spec = bundle.spec
    classes = operators("", (), spec.kernels) or ("other",)
    aim = Aim.SPEED if spec.kind is Kind.PERF or spec.variant is Variant.OPTIMIZE else Aim.CORRECTNESS
    lineage = lineage_of(held_out.known, bundle.id)
    left_out: dict[str, str] = {}
    good: list[Chosen] = []
    for known in cards:
        card = known.file.card
        where = card.applies_to
        if where.operator not in classes:
            continue
        why_not = _refusal(known, aim, spec.languages, device, held_out, lineage, own)
        if why_not:
            left_out[card.id] = why_not
            continue
        whole = posterior(total(known.counts))
        weight = _OPERATOR if where.operator == classes[0] else _RELATED
        score = round(weight + whole.low + min(_gain(known), 2.0) / 4, 4)
        why = f"{where.operator}, {', '.join(where.languages)} on {device}; helps {whole}"
        text = render(known)
        good.append(Chosen(known, score, why, text, tokens_of(text)))
    good.sort(key=lambda one: (-one.score, one.known.file.card.id))
    return Retrieved(bundle.id, *_bounded(good, left_out, limit, tokens))


def _bounded(
    good: list[Chosen], left_out: dict[str, str], limit: int, tokens: int
) -> tuple[tuple[Chosen, ...], tuple[tuple[str, str], ...]]:
    chosen: list[Chosen] = []
    levers: set[str] = set()
    for one in good:
        card = one.known.file.card
        codes = set(card.lever.split("+"))
        if len(chosen) >= limit:
            left_out[card.id] = f"others come first ({one.score:g})"
        elif not levers.isdisjoint(codes):
            left_out[card.id] = "its lever is told by another that comes first"
        elif sum(c.tokens for c in chosen) + one.tokens > tokens:
            left_out[card.id] = f"its {one.tokens} tokens are more than are left"
        else:
            chosen.append(one)
            levers |= codes
    return tuple(chosen), tuple(sorted(left_out.items()))


def _refusal(
    known: Known, aim: Aim, languages: tuple[str, ...], device: str, held_out: HeldOut, lineage: str, own: bool
) -> str:
    """Why a card of the task's classes is not for it; empty where it is."""
    card, used = known.file.card, known.lineages_used
    if card.status is not Status.ACTIVE:
        return f"is {card.status.value}: {card.reason}"
    if not known.evidence:
        return "nothing was measured of it"
    if panel := next((held_out.lineages[one] for one in sorted(used) if one in held_out.lineages), ""):
        return f"was learned at what panels/{panel}.toml holds out"
    if lineage in used and (not own or lineage in held_out.lineages):
        return "was learned at this task, or at a relative of it"
    if card.aim is not aim:
        return f"is about {card.aim.value}"
    if set(languages).isdisjoint(card.applies_to.languages):
        return f"is for {', '.join(card.applies_to.languages)}"
    if device not in card.applies_to.devices:
        return f"was measured on {', '.join(card.applies_to.devices)}"
    return known.refuted()


def _gain(known: Known) -> float:
    """The least gain that its evidence promises, over devices: 0 where that is none."""
    return max((_least(effect) for effect in known.effects), default=0.0)


def _least(effect: Effect) -> float:
    return max(0.0, effect.low - 1) if effect.measure == "speedup" else max(0.0, effect.low)
