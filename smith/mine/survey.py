"""Everything about the merged pull requests of a history, before any of them is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from smith.errors import BadInput, UnknownTask
from smith.git.history import Landing
from smith.git.repository import Repository
from smith.mine import kind as kinds_
from smith.mine import lineage
from smith.mine import reverts as reverts_
from smith.mine import rules as rules_
from smith.mine.classify import Shape
from smith.mine.decide import Case, Filters
from smith.mine.discover import History, Merged, discover, numbered, pull_heads
from smith.mine.landed import read_history
from smith.mine.reverts import Reverts
from smith.mine.rules import Rules
from smith.mine.scan import Crew, foresee, shapes
from smith.mine.signals import Ahead, Landed, follow_renames, look_ahead
from smith.mine.store import Store, open_store
from smith.mine.worker import without_collection
from smith.records.candidate import Kind

_PICKED = re.compile(r"^\(cherry picked from commit ([0-9a-f]{40})\)\s*$", re.MULTILINE)

Progress = Callable[[str, int, int], None]
"""What is being done, how many of it are done, and how many there are."""


@dataclass(frozen=True)
class Wanted:
    """What the user asked for, parsed once."""

    since: datetime | None = None
    until: datetime | None = None
    numbers: frozenset[int] = frozenset()
    filters: Filters = field(default_factory=Filters)
    limit: int | None = None

    def selects(self, merged: Merged) -> bool:
        """Whether ``merged`` is within the selection by date and number."""
        when = datetime.fromisoformat(merged.pull_request.merged_at)
        if self.numbers and merged.number not in self.numbers:
            return False
        return (self.since is None or when >= self.since) and (self.until is None or when <= self.until)


@dataclass(frozen=True)
class Survey:
    """A history with everything known of each of its selected pull requests, newest first."""

    history: History
    cases: tuple[Case, ...]
    ahead: Mapping[int, Ahead]
    """What came later, by number; nothing where single numbers were asked for, since the others are not read then."""
    lineages: Mapping[int, str]
    """By number; nothing in the same case."""
    notes: tuple[str, ...] = ()


@without_collection()
def survey(
    upstream_repo: Repository,
    *,
    repo: str,
    branch: str | None = None,
    wanted: Wanted | None = None,
    rules: Rules | None = None,
    cache: Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Survey:
    """Everything about the merged pull requests that ``wanted`` selects, before any of them is left out.

    Raises :class:`UnknownTask` for a number that is not merged, :class:`BadInput` for an unknown branch or a shallow
    clone.
    """
    rules, wanted = rules or rules_.load(), wanted or Wanted()
    if upstream_repo.text("rev-parse", "--is-shallow-repository") == "true":
        raise BadInput(f"{repo} is a shallow clone: its history is cut off", hint="git fetch --unshallow")
    say = progress or (lambda what, done, total: None)
    name = branch or upstream_repo.default_branch
    tip = upstream_repo.resolve(name)
    say("reading the history", 0, 0)
    with open_store(cache, rules) as store, Crew(upstream_repo, rules, jobs) as crew:

        def begin(landings: Sequence[Landing]) -> None:
            if not wanted.numbers:  # those are few
                foresee([one.changes for one in landings if numbered(one)], store, crew)

        if not wanted.numbers and store.last_tip(repo, name) is None:
            crew.call(len(pull_heads(upstream_repo)))  # most of them will have to be classified
        history, whole = read_history(upstream_repo, name, store, repo, on_new=begin)
        for number in sorted(wanted.numbers):
            _known(upstream_repo, history, tip, number)
        # What came later and what belongs together is told by all of a history, so all of it is read: once.
        read = [one for one in history.merged if wanted.selects(one)] if wanted.numbers else history.merged
        elsewhere = _landed_on_default(upstream_repo, name)
        reverts = reverts_.find(history)
        done = 0

        def classified(more: int) -> None:
            nonlocal done
            done += more
            say("classifying", done, len(read))

        notes = _rewritten(upstream_repo, store, repo, name, tip)
        if not whole:
            notes += (f"{repo}: blobs are missing here: what was rebased, or has lost its number, may not be found",)
        found = shapes([one.changes for one in read], store, crew, progress=classified)
        store.remember_tip(repo, name, tip)
    unread = sum(len(shape.unread) for shape in found)
    if unread:
        notes += (f"{repo}: {unread} changed files could not be read: their blobs are not in this clone",)
    cases = [_case(one, shape, reverts, rules, elsewhere) for one, shape in zip(read, found, strict=True)]
    landed = [] if wanted.numbers else [_landed(case) for case in reversed(cases)]
    followed = follow_renames(landed)
    return Survey(
        history,
        tuple(case for case in cases if wanted.selects(case.merged)),
        look_ahead(landed, reverts, followed),
        lineage.group(repo, landed, reverts, followed=followed),
        notes,
    )


def _landed(case: Case) -> Landed:
    record = case.merged.pull_request
    return Landed(
        number=record.number,
        kind=case.kind,
        merged_at=record.merged_at,
        kernels=frozenset((kernel.path, symbol) for kernel in case.shape.kernels for symbol in kernel.code),
        renames=tuple((one.old_path, one.path) for one in case.merged.changes if one.status == "R" and one.old_path),
        title=record.title,
        body=record.body,
        mass=case.mass,
    )


def _rewritten(repo: Repository, store: Store, name: str, branch: str, tip: str) -> tuple[str, ...]:
    """Say so where the branch no longer holds what it held when it was mined last."""
    last = store.last_tip(name, branch)
    if last is None or last == tip or repo.run("merge-base", "--is-ancestor", last, tip).ok:
        return ()
    gone = repo.run("rev-list", "--count", "--first-parent", last, f"^{tip}")
    count = f": {gone.stdout.text.strip()} landed commits of then are no longer in it" if gone.ok else ""
    short = branch.removeprefix("refs/heads/")
    return (f"{name}: the history of {short} was rewritten since it was mined last (it named {last[:12]}){count}",)


def _landed_on_default(repo: Repository, branch: str) -> Mapping[str, str]:
    """What the default branch has, when another is mined: ``#N`` and object ids of landings to the landed commit."""
    default = repo.default_branch
    if repo.resolve(default) == repo.resolve(branch) or branch in (default, default.removeprefix("refs/heads/")):
        return {}
    there = discover(repo, default)
    return {landing.oid: landing.oid for landing in there.landings} | {
        f"#{one.number}": one.pull_request.merged for one in there.merged
    }


def _case(merged: Merged, shape: Shape, reverts: Reverts, rules: Rules, elsewhere: Mapping[str, str]) -> Case:
    record, limits = merged.pull_request, rules.limits
    kind, evidence = kinds_.tell(record.title, record.body, shape)
    if merged.number in reverts.relands:
        kind, evidence = Kind.RELAND, reverts.relands[merged.number]
    mass = len(shape.files) >= limits.mass_files or len(shape.kernels) >= limits.mass_kernel_files
    picked = [oid for landing in merged.landings for oid in _PICKED.findall(landing.body)]
    names = [f"#{merged.number}", *picked]
    return Case(
        merged,
        shape,
        kind,
        evidence,
        reverts.reverted.get(merged.number),
        mass,
        compiled=frozenset(rules.binaries.values()),
        backport_of=next((elsewhere[name] for name in names if name in elsewhere), None),
    )


def _known(repo: Repository, history: History, tip: str, number: int) -> Merged:
    found = next((one for one in history.merged if one.number == number), None)
    if found is not None:
        return found
    head = history.heads.get(number)
    if head is not None and repo.run("merge-base", "--is-ancestor", head, tip).ok:
        why = "the branch holds its head, but no landing of it: it came with another merge, or was moved there"
    elif head is not None:
        why = f"refs/pull/{number}/head exists, so it is open or was closed without a merge into this branch"
    else:
        why = "nothing is known of it here"
    raise UnknownTask(f"pull request #{number} is not merged: {why}", hint="choose one that smith mine lists")
