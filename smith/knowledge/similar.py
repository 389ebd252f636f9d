"""Cards that say the same twice, and cards that contradict each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from smith.freeze.overlap import words
from smith.knowledge.base import Known
from smith.knowledge.effects import harms, helps
from smith.records.card import AppliesTo, Status

ALIKE = 0.8
"""Jaccard resemblance of the texts from which on two cards of one class are one."""
_RUN = 3


def overlap(one: AppliesTo, other: AppliesTo) -> bool:
    """Whether there is a place to which both apply. A dtype or a regime that one leaves open is any."""
    return (
        one.operator == other.operator
        and not set(one.languages).isdisjoint(other.languages)
        and not set(one.devices).isdisjoint(other.devices)
        and (not one.dtypes or not other.dtypes or not set(one.dtypes).isdisjoint(other.dtypes))
        and (not one.regime or not other.regime or _plain(one.regime) == _plain(other.regime))
    )


def _plain(text: str) -> str:
    return " ".join(words(text))


def near_duplicates(cards: Sequence[Known]) -> Iterator[tuple[Known, Known, str]]:
    """Pairs that should be one card, the later first, and why. Identifiers that are the same are not told here."""
    groups: defaultdict[tuple[str, str], list[Known]] = defaultdict(list)
    for known in cards:
        groups[known.file.card.applies_to.operator, known.file.card.aim].append(known)
    for some in groups.values():
        told = set()
        for one, other in _same_lever(some):
            told.add((one.file.where, other.file.where))
            yield other, one, "the same lever, where both apply"
        for one, other, share in _same_text(some):
            if (one.file.where, other.file.where) not in told and overlap(
                one.file.card.applies_to, other.file.card.applies_to
            ):
                yield other, one, f"the texts are alike ({share:.0%})"


def _same_lever(cards: Iterable[Known]) -> Iterator[tuple[Known, Known]]:
    by_lever: defaultdict[str, list[Known]] = defaultdict(list)
    for known in cards:
        for earlier in by_lever[known.file.card.lever]:
            same = earlier.file.card.id == known.file.card.id
            if not same and overlap(earlier.file.card.applies_to, known.file.card.applies_to):
                yield earlier, known
        by_lever[known.file.card.lever].append(known)


def _same_text(cards: Sequence[Known]) -> Iterator[tuple[Known, Known, float]]:
    """Pairs whose titles and texts resemble each other, found by prefix filtering (Chaudhuri, Ganti and Kaushik 2006):
    of two sets that are so alike, the rarest parts of one must hold one of the rarest of the other."""
    sets = [_shingles(known) for known in cards]
    often = Counter(part for parts in sets for part in parts)
    seen: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, parts in enumerate(sets):
        prefix = sorted(parts, key=lambda part: (often[part], part))[: len(parts) - int(ALIKE * len(parts)) + 1]
        for other in sorted({o for part in prefix for o in seen[part]}):
            if min(len(parts), len(sets[other])) < ALIKE * max(len(parts), len(sets[other])):
                continue
            both = len(parts & sets[other])
            share = both / (len(parts) + len(sets[other]) - both)
            if share >= ALIKE and cards[at].file.card.id != cards[other].file.card.id:
                yield cards[other], cards[at], share
        for part in prefix:
            seen[part].append(at)


def _shingles(known: Known) -> frozenset[tuple[str, ...]]:
    """Runs of words of the title and of what is to be done: when and how to verify are alike in many good cards."""
    parts = words(f"{known.file.card.title} {known.file.section('How')}")
    return frozenset(zip(*(parts[at:] for at in range(_RUN)), strict=False))


def contradictions(cards: Sequence[Known], opposite: Mapping[str, str]) -> Iterator[tuple[Known, Known]]:
    """Pairs of active cards of which one says that something helps where the other says that it harms.

    ``opposite`` gives the lever that undoes another: two that undo each other cannot both help in one place.
    """
    groups: defaultdict[tuple[str, str], list[Known]] = defaultdict(list)
    for known in cards:
        if known.file.card.status is Status.ACTIVE:
            groups[known.file.card.applies_to.operator, known.file.card.lever].append(known)
    for (operator, lever), some in groups.items():
        other_lever = opposite.get(lever)
        if other_lever is not None and lever < other_lever:
            for one in some:
                for other in groups.get((operator, other_lever), ()):
                    if _both_apply(one, other) and _helps_anywhere(one) and _helps_anywhere(other):
                        yield one, other
        for at, one in enumerate(some):
            for other in some[at + 1 :]:
                if _both_apply(one, other) and _disagree(one, other):
                    yield one, other


def _both_apply(one: Known, other: Known) -> bool:
    return one.file.card.aim is other.file.card.aim and overlap(one.file.card.applies_to, other.file.card.applies_to)


def _helps_anywhere(known: Known) -> bool:
    return any(helps(effect) for effect in known.effects)


def _disagree(one: Known, other: Known) -> bool:
    mine = {effect.device: effect for effect in one.effects}
    return any(
        (theirs := mine.get(effect.device)) is not None
        and ((helps(effect) and harms(theirs)) or (harms(effect) and helps(theirs)))
        for effect in other.effects
    )
