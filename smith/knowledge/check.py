"""The gate of the knowledge base: everything that keeps a card or its evidence out, a typed code each.

The checks of a pull request run it. It runs no test and reads no run: what it can prove is that cards follow from
evidence, and evidence agrees with receipts of this repository. Whether a grade was really measured, only measuring
again tells.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from smith import process
from smith.errors import RecordError, SmithError
from smith.freeze.bundle import Store
from smith.git.objects import list_tree, read_blobs, shown
from smith.git.repository import Repository, clean_environment
from smith.knowledge.answers import Answers
from smith.knowledge.base import LARGEST_EVIDENCE, Known, Sealed, evidence_paths, load_evidence
from smith.knowledge.cards import (
    LARGEST,
    CardFile,
    card_paths,
    identifier,
    known_operators,
    load,
    loads,
    well_placed,
)
from smith.knowledge.effects import effects_of, outcome, same_effects
from smith.knowledge.forbidden import Found, forbidden
from smith.knowledge.held_out import HeldOut
from smith.knowledge.levers import opposites
from smith.knowledge.receipts import Receipts
from smith.knowledge.similar import contradictions, near_duplicates
from smith.paths import Layout
from smith.records.card import Status
from smith.records.sealed import Evidence, Speed, Use, UseOutcome
from smith.score.intervals import contradiction


@dataclass(frozen=True)
class Finding:
    """Something that keeps a change out: the file or folder that it is about, a typed code, a sentence."""

    where: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.code}: {self.message}"


@dataclass
class Checked:
    """What a check found. ``behind`` counts cards whose written figures do not hold all evidence yet."""

    cards: int = 0
    findings: list[Finding] = field(default_factory=list)
    behind: int = 0


def check(store: Store, *, base: str | None = None, machine: str = "") -> Checked:
    """Check every card and all evidence; with ``base`` also that nothing which was there then is gone.

    ``machine`` is the name of this machine, which no card may give. Raises :class:`smith.errors.BadInput` for a base
    that is no commit.
    """
    layout, found = store.layout, Checked()
    say = found.findings.append
    held_out = HeldOut.of(layout)
    files = list(_cards(layout, say))
    found.cards = len(files)
    sealed = list(_evidence(layout, say))
    by_card: defaultdict[str, list[Sealed]] = defaultdict(list)
    for one in sealed:
        by_card[one.evidence.card].append(one)
    known = [Known(file, tuple(by_card.get(file.card.id, ())), held_out.known) for file in files]
    answers = Answers.of(store)
    for one_card in known:
        _card(one_card, answers, machine, say)
        found.behind += _figures(one_card, say)
    cards = {file.card.id: file for file in files}
    _all_evidence(sealed, cards, held_out, Receipts(store), machine, say)
    _between(known, say)
    for where in _strays(layout):
        say(Finding(where, "stray", "is neither a card nor evidence; indexes are made in .smith/, never committed"))
    if base is not None:
        _since(store, base, cards, say)
    found.findings.sort(key=lambda finding: (finding.where, finding.code, finding.message))
    return found


Say = Callable[[Finding], None]


def _cards(layout: Layout, say: Say) -> Iterator[CardFile]:
    for path in card_paths(layout):
        where = path.relative_to(layout.root).as_posix()
        try:
            file = load(layout, path)
        except RecordError as error:
            say(Finding(where, "schema", _without(error.message, where)))
            continue
        if (size := path.stat().st_size) > LARGEST:
            say(Finding(where, "size", f"{size} bytes, more than {LARGEST}"))
        yield file


def _evidence(layout: Layout, say: Say) -> Iterator[Sealed]:
    for path in evidence_paths(layout):
        where = path.relative_to(layout.root).as_posix()
        try:
            if not path.is_symlink() and (size := path.stat().st_size) > LARGEST_EVIDENCE:
                say(Finding(where, "size", f"{size} bytes, more than {LARGEST_EVIDENCE}"))
                continue
            one = load_evidence(layout, path)
        except RecordError as error:
            say(Finding(where, "schema", _without(error.message, where)))
            continue
        if one.digest != path.stem:
            say(Finding(where, "evidence_digest", f"its bytes have the digest {one.digest[:12]}: it was edited"))
            continue
        yield one


def _without(message: str, where: str) -> str:
    return message.removeprefix(f"{where}: ")


def _card(known: Known, answers: Answers, machine: str, say: Say) -> None:
    """What one card alone can be wrong in."""
    file, card = known.file, known.file.card
    if (right := identifier(card)) != card.id:
        say(Finding(file.where, "identifier", f"is {card.id}, and what it states has {right}"))
    if card.applies_to.operator not in known_operators():
        say(Finding(file.where, "operator", f"{card.applies_to.operator} is no class of operators (or: other)"))
    if not well_placed(file.where, card):
        say(Finding(file.where, "place", f"belongs into knowledge/cards/{card.applies_to.operator}/"))
    where = card.applies_to
    text = "\n".join((card.title, where.regime, card.reason, *card.symbols, *where.toolchain.values(), file.body))
    for found in forbidden(text, machine=machine):
        say(Finding(file.where, found.code, f"no card may say {found.quoted!r}"))
    if task := answers.given_by(text):
        say(Finding(file.where, "answer", f"repeats a part of the reference patch of {task}"))
    digests = {sealed.digest for sealed in known.evidence}
    if not digests:
        say(Finding(file.where, "no_evidence", "no evidence names it: a card is made by smith knowledge propose"))
    elif not any(s.evidence.founding and _won(s.evidence) for s in known.evidence):
        say(Finding(file.where, "no_evidence", "no win was measured: it was made from nothing"))
    for digest in sorted(set(card.refuted_by) - digests):
        say(Finding(file.where, "evidence_missing", f"it is refuted by {digest[:12]}, which is not here"))


def _won(evidence: Evidence) -> bool:
    return any(use.outcome is UseOutcome.WIN for use in evidence.uses)


def _figures(known: Known, say: Say) -> bool:
    """Whether written figures say what follows from the evidence that they name; True where newer evidence lies beside.

    Being behind is no fault: two proposals about one card would be in each other's way.
    """
    stated, where = known.file.card.figures, known.file.where
    digests = {sealed.digest for sealed in known.evidence}
    if stated is None:
        return bool(digests)
    if missing := sorted(set(stated.evidence) - digests):
        say(Finding(where, "evidence_missing", f"its figures are of {missing[0][:12]}, which is not here"))
        return False
    right = (known if digests == set(stated.evidence) else known.only(stated.evidence)).figures()
    if stated.evidence != right.evidence or (stated.uses, stated.cited) != (right.uses, right.cited):
        say(Finding(where, "figures", "uses or evidence are not counted so: smith knowledge index --figures"))
    if not same_effects(stated.effects, right.effects):
        wanted = ", ".join(f"{e.value:g} ({e.low:g} to {e.high:g})" for e in right.effects) or "none"
        say(Finding(where, "effect", f"is not what its evidence says: {wanted}"))
    return digests != set(stated.evidence)


def _all_evidence(
    sealed: Sequence[Sealed],
    cards: Mapping[str, CardFile],
    held_out: HeldOut,
    receipts: Receipts,
    machine: str,
    say: Say,
) -> None:
    used: dict[tuple[str, str, str, int, str], str] = {}
    named_by = {one.digest: one.evidence.card for one in sealed}
    names: dict[str, list[Found]] = {}
    for one in sealed:
        where, evidence = f"knowledge/evidence/{one.digest}.json", one.evidence
        card = cards.get(evidence.card)
        if card is None:
            say(Finding(where, "no_card", f"names the card {evidence.card}, which is not here"))
        else:
            _fits(where, evidence, card, say)
        named = "\n".join((evidence.agent, evidence.model or "", *evidence.toolchain, *evidence.toolchain.values()))
        if named not in names:  # agents, models and toolchains are few
            names[named] = list(forbidden(named, machine=machine))
        for found in names[named]:
            say(Finding(where, found.code, f"no evidence may say {found.quoted!r}"))
        if evidence.again and named_by.get(evidence.again) != evidence.card:
            say(Finding(where, "evidence_missing", f"it measures {evidence.again[:12]} again, which is not here"))
        if not same_effects(evidence.effects, effects_of(evidence.uses)):
            say(Finding(where, "effect", "is not what its uses come to"))
        for use in evidence.uses:
            told = f"{use.task}, attempt {use.attempt}"
            for code, message in (*_use(use), *receipts.faults(use)):
                say(Finding(where, code, f"{told}: {message}"))
            if panel := held_out.forbids(use.task):
                say(Finding(where, "held_out", f"{told}: it, or a relative of it, is held out by panels/{panel}.toml"))
            grade = use.grade_sha256 if evidence.again else ""  # the same attempt may be measured again often
            other = used.setdefault((evidence.card, evidence.run, use.task, use.attempt, grade), one.digest)
            if other != one.digest:
                say(Finding(where, "duplicate", f"{told} is told in {other[:12]} already"))


def _fits(where: str, evidence: Evidence, card: CardFile, say: Say) -> None:
    """Whether evidence is about what its card is about."""
    devices = {use.device.partition(":")[0] for use in evidence.uses}
    if foreign := sorted(devices - set(card.card.applies_to.devices)):
        say(Finding(where, "applies", f"was measured on {foreign[0]}, for which {card.card.id} is not"))
    if any((use.control is None) is not (card.card.aim.value == "speed") for use in evidence.uses):
        say(Finding(where, "applies", f"{card.card.id} is about {card.card.aim.value}, and these uses are not"))


def _use(use: Use) -> Iterator[tuple[str, str]]:
    """What one use can be wrong in by itself."""
    if use.outcome is not outcome(use.verdict, use.speed, use.control):
        yield "outcome", f"is no {use.outcome.value}"
    full = use.fail_to_pass.passed == use.fail_to_pass.total and use.pass_to_pass.passed == use.pass_to_pass.total
    if use.verdict.value == "solved" and not full:
        yield "outcome", "is solved, and not all of its tests passed"
    if use.speed is not None and (fault := _speed_fault(use.speed)):
        yield "effect", fault


def _speed_fault(speed: Speed) -> str:
    return contradiction(speed.ratio, speed.low, speed.high, speed.worst, [case.ratio for case in speed.cases])


def _between(known: list[Known], say: Say) -> None:
    """What cards can be wrong in together."""
    seen: dict[str, str] = {}
    for one in known:
        first = seen.setdefault(one.file.card.id, one.file.where)
        if first != one.file.where:
            say(Finding(one.file.where, "duplicate", f"states what {first} states"))
    current = [one for one in known if one.file.card.status is not Status.RETRACTED]
    for later, earlier, why in near_duplicates(current):
        say(Finding(later.file.where, "near_duplicate", f"{earlier.file.where}: {why}"))
    for one, other in contradictions(current, opposites()):
        say(Finding(other.file.where, "contradiction", f"{one.file.where} says the opposite where both apply"))
    for one in current:
        if one.file.card.status is Status.ACTIVE and (why := one.refuted()):
            say(Finding(one.file.where, "refuted", f"{why}: smith knowledge retract {one.file.card.id}"))


def _strays(layout: Layout) -> Iterator[str]:
    """Files of the knowledge base that are neither card nor evidence."""
    good = {os.fspath(path) for path in (*card_paths(layout), *evidence_paths(layout))}
    kept = {"README.md", ".gitkeep", "cards/.gitkeep", "evidence/.gitkeep"}
    good |= {os.fspath(layout.knowledge / name) for name in kept}
    for folder, folders, names in os.walk(layout.knowledge):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for path in (os.path.join(folder, name) for name in (*names, *links)):
            if path not in good:
                yield os.path.relpath(path, layout.root)


def _since(store: Store, base: str, cards: Mapping[str, CardFile], say: Say) -> None:
    """What was there at ``base`` and may not go: evidence, and cards, which are retracted and never removed."""
    repo = Repository(store.data.git_dir)
    argv = ["git", "rev-parse", "--show-prefix"]
    prefix = process.run(argv, cwd=store.layout.root, env=clean_environment(), timeout_s=60).check().stdout.text.strip()
    tree = repo.run("rev-parse", "--verify", "--quiet", f"{repo.resolve(base)}:{prefix}knowledge")
    if not tree.ok:
        return
    entries = [e for e in list_tree(repo, tree.stdout.text.strip()) if e.kind == "blob"]
    gone = [e for e in entries if not (store.layout.knowledge / shown(e.path)).is_file()]
    for entry, (_, data) in zip(gone, read_blobs(repo, (e.oid for e in gone)), strict=True):
        where = f"knowledge/{shown(entry.path)}"
        if where.startswith("knowledge/evidence/") and where.endswith(".json"):
            say(Finding(where, "evidence_removed", "evidence is only added"))
        elif where.startswith("knowledge/cards/") and where.endswith(".md"):
            try:
                before = loads(data or b"", where).card
            except SmithError:
                continue  # what was no card may go
            if before.id not in cards:
                say(Finding(where, "card_removed", f"{before.id} is gone: retract it, so that it is not found again"))
