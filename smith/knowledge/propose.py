"""A proposal: a branch with one commit on top of what is checked out, made without touching the work tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from smith.errors import BadInput
from smith.evaluate.run import load_run
from smith.freeze.bundle import Store
from smith.freeze.lineages import lineages
from smith.git import proposal
from smith.git.repository import Repository
from smith.knowledge.base import Known, Sealed, sound
from smith.knowledge.cards import CardFile, dumps, path_of
from smith.knowledge.distil import Gathered, Key, card_of, gather, match, wins
from smith.knowledge.prose import proposal_body, text_of
from smith.knowledge.seal import run_digest, seal
from smith.records.attempt import RunConfig
from smith.records.sealed import Use

BRANCH = "refs/heads/knowledge/"


@dataclass(frozen=True)
class Proposal:
    """What a run has to say. ``commit`` is empty where that is nothing new."""

    branch: str = ""
    commit: str = ""
    message: str = ""
    added: tuple[str, ...] = ()
    """Identifiers of new cards."""
    updated: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)


def propose(store: Store, run: str, control: str | None = None) -> Proposal:
    """Distil a run and commit what is new to the branch ``knowledge/<run>``.

    Only measured wins make a card. Raises :class:`BadInput` on a dirty work tree, for a control that is the run itself,
    or where the branch holds another proposal.
    """
    config = load_run(store.layout, run)
    paired = load_run(store.layout, control) if control is not None else None
    if paired is not None and paired.run == config.run:
        raise BadInput(f"{run} cannot be its own control", hint="--control names a run without what is to be shown")
    repo = Repository(store.data.git_dir)
    head = proposal.clean_head(store.layout.root, repo)
    there = list(sound(store.layout))
    gathered = gather(store, config, paired, there)
    cards = list(_cards(store, there, gathered, config, paired))
    files = {where: data for one in cards for where, data in one.files().items()}
    if not files:
        return Proposal(left_out=dict(gathered.left_out))
    message = _message(config, cards, gathered)
    branch = f"{BRANCH}{config.run}"
    commit = proposal.commit(store.layout.root, repo, head, files, message, branch)
    return Proposal(
        branch=branch.removeprefix("refs/heads/"),
        commit=commit,
        message=message,
        added=tuple(one.known.file.card.id for one in cards if one.new),
        updated=tuple(one.known.file.card.id for one in cards if not one.new),
        evidence=tuple(one.sealed.digest for one in cards),
        left_out=dict(gathered.left_out),
    )


@dataclass(frozen=True)
class _Touched:
    """A card with what a run adds to it."""

    known: Known
    sealed: Sealed
    new: bool

    def files(self) -> dict[str, bytes]:
        """Path below the data repository to content. A card that is there stays as it is: evidence is only added."""
        made = {f"knowledge/evidence/{self.sealed.digest}.json": self.sealed.evidence.dumps()}
        if self.new:
            made[self.known.file.where] = dumps(self.known.file.card, self.known.file.body)
        return made


def _cards(
    store: Store, there: Sequence[Known], gathered: Gathered, config: RunConfig, control: RunConfig | None
) -> list[_Touched]:
    filed = {
        (sealed.evidence.run, use.task, use.attempt)
        for known in there
        for sealed in known.evidence
        for use in sealed.evidence.uses
    }
    run, found = run_digest(store, config), []
    known_lineages = lineages(store.layout)
    for key, every, known in _claims(there, gathered):
        uses = [use for use in every if (run, use.task, use.attempt) not in filed]
        if len(uses) < len(every):
            gathered.left_out["it is filed already"] += len(every) - len(uses)
        if not uses:
            continue
        if known is None and not wins(uses):
            gathered.left_out["no win was measured with its lever, and no card has it"] += len(uses)
            continue
        card = known.file.card if known is not None else card_of(key)
        versions = gathered.toolchains.get(key, {})
        sealed = seal(key, uses, card.id, config, control, store, founding=known is None, toolchain=versions)
        file = known.file if known is not None else CardFile(path_of(card), card, text_of(card))
        before = known.evidence if known is not None else ()
        found.append(_Touched(Known(file, (*before, sealed), known_lineages), sealed, new=known is None))
    return found


def _claims(there: Sequence[Known], gathered: Gathered) -> list[tuple[Key, list[Use], Known | None]]:
    """What the run says by card: what pulls its lever, and what only cites it; and the card, where there is one."""
    found = [(key, list(every), match(there, key)) for key, every in gathered.uses.items()]
    left = dict(gathered.cited)
    for _, uses, known in found:
        uses += left.pop(known.file.card.id, []) if known is not None else []
    by_id = {known.file.card.id: known for known in there}
    for identifier, uses in left.items():
        card = by_id[identifier].file.card
        where = card.applies_to
        key = Key(card.aim, card.lever, where.operator, where.languages, uses[0].device.partition(":")[0])
        found.append((key, uses, by_id[identifier]))
    return found


def _message(config: RunConfig, cards: Sequence[_Touched], gathered: Gathered) -> str:
    new = sum(one.new for one in cards)
    parts = [f"{n} {what}" for n, what in ((new, "new"), (len(cards) - new, "measured again")) if n]
    subject = f"knowledge: {', '.join(parts)} ({config.panel}, {config.agent})"
    named = [("new card" if one.new else "measured again", one.known) for one in cards]
    body = proposal_body(config.run, config.panel, named, gathered.left_out)
    trailers = [f"Smith-Run: {config.run}"]
    trailers += [f"Smith-Card: {one.known.file.card.id}" for one in cards]
    trailers += [f"Smith-Evidence: {one.sealed.digest}" for one in cards]
    return f"{subject}\n\n{body}\n\n" + "\n".join(trailers) + "\n"
