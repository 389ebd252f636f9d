"""The knowledge base as it lies on disk: cards, the evidence that names each, and what both come to."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from smith.errors import RecordError
from smith.freeze.lineages import lineage_of, lineages
from smith.knowledge.cards import CardFile, card_paths, load
from smith.knowledge.effects import effects_of, harms
from smith.knowledge.posterior import count, posterior, total
from smith.paths import Layout
from smith.records.base import read
from smith.records.card import Counts, Effect, Figures, Origin
from smith.records.sealed import Evidence, Use, UseOutcome, UseRead

LARGEST_EVIDENCE = 1 << 18
"""Bytes of one evidence file."""


@dataclass(frozen=True)
class Sealed:
    """Evidence with its digest, which is its name."""

    digest: str
    evidence: Evidence


@dataclass(frozen=True)
class Known:
    """A card with all evidence that names it."""

    file: CardFile
    evidence: tuple[Sealed, ...] = ()
    lineages: Mapping[str, str] = field(default_factory=dict)
    """What is known of the lineages of tasks."""

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """Every use once, by run, task and attempt: a run may have been proposed in parts. What was measured again is
        in :attr:`again`."""
        seen: dict[tuple[str, str, int], Use] = {}
        for sealed in self.evidence:
            if sealed.evidence.again is not None:
                continue
            for use in sealed.evidence.uses:
                seen.setdefault((sealed.evidence.run, use.task, use.attempt), use)
        return tuple(seen.values())

    @cached_property
    def again(self) -> tuple[Use, ...]:
        """Wins that were measured again, each as often as that was done."""
        return tuple(use for sealed in self.evidence if sealed.evidence.again for use in sealed.evidence.uses)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What all uses come to, a device each."""
        return effects_of(self.uses)

    @cached_property
    def own_lineages(self) -> frozenset[str]:
        """The lineages that the card was made from."""
        return frozenset(
            lineage_of(self.lineages, use.task)
            for sealed in self.evidence
            if sealed.evidence.founding
            for use in sealed.evidence.uses
            if use.outcome is UseOutcome.WIN
        )

    @cached_property
    def lineages_used(self) -> frozenset[str]:
        """The lineages of all tasks in its evidence."""
        return frozenset(lineage_of(self.lineages, use.task) for use in self.uses)

    @cached_property
    def counts(self) -> dict[Origin, Counts]:
        """Uses of the lever by origin, whoever had read the card; only origins that have any."""
        return self._counted(use for use in self.uses if use.pulled)

    @cached_property
    def cited(self) -> dict[Origin, Counts]:
        """Attempts that cite the card, by origin; only origins that have any."""
        return self._counted(use for use in self.uses if use.read is UseRead.CITED)

    def _counted(self, uses: Iterable[Use]) -> dict[Origin, Counts]:
        own = self.own_lineages
        by: defaultdict[Origin, list[UseOutcome]] = defaultdict(list)
        for use in uses:
            by[Origin.OWN if lineage_of(self.lineages, use.task) in own else Origin.OTHER].append(use.outcome)
        return {origin: count(by[origin]) for origin in Origin if origin in by}

    def refuted(self) -> str:
        """How the evidence speaks against the card; empty where it does not."""
        if harmful := next((effect for effect in self.effects if harms(effect)), None):
            return f"on {harmful.device} the whole interval of its effect is harm"
        chance = posterior(total(self.counts))
        return f"it helps less often than not: {chance}" if chance.high < 0.5 else ""

    def figures(self) -> Figures:
        """What ``smith knowledge index`` writes into the card."""
        digests = tuple(sorted(sealed.digest for sealed in self.evidence))
        return Figures(evidence=digests, effects=self.effects, uses=self.counts, cited=self.cited)

    def only(self, digests: Iterable[str]) -> Known:
        """The card with no other evidence than this."""
        wanted = set(digests)
        return Known(self.file, tuple(s for s in self.evidence if s.digest in wanted), self.lineages)


def evidence_paths(layout: Layout) -> list[Path]:
    """Every file that should be evidence, sorted."""
    return sorted(layout.evidence.glob("*.json"), key=os.fspath) if layout.evidence.is_dir() else []


def load_evidence(layout: Layout, path: Path) -> Sealed:
    """Read one evidence file; its digest is that of its bytes, whatever its name. Raises :class:`RecordError`."""
    where = path.relative_to(layout.root).as_posix()
    if path.is_symlink():
        raise RecordError(f"{where}: a link is no evidence")
    data = read(path)
    if len(data) > LARGEST_EVIDENCE:
        raise RecordError(f"{where}: {len(data)} bytes, more than {LARGEST_EVIDENCE}")
    return Sealed(hashlib.sha256(data).hexdigest(), Evidence.loads(data, where))


def sound(layout: Layout) -> Iterator[Known]:
    """Every card that can be read, with what evidence of it can be read. What cannot is for the check to say."""
    by_card: defaultdict[str, list[Sealed]] = defaultdict(list)
    for path in evidence_paths(layout):
        try:
            sealed = load_evidence(layout, path)
        except RecordError:
            continue
        if sealed.digest == path.stem:
            by_card[sealed.evidence.card].append(sealed)
    known = lineages(layout)
    for path in card_paths(layout):
        try:
            file = load(layout, path)
        except RecordError:
            continue
        yield Known(file, tuple(by_card.get(file.card.id, ())), known)
