"""Recognise pull requests that landed commit by commit.

A rebase keeps author, author date, subject and patch, and gives every commit a new id, a new committer date and a new
parent. So the commits of ``refs/pull/N/head`` are compared with the landings that no subject explains: cheaply by
author and subject or date, then by stable patch id, all patch ids from one stream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from smith.git.history import Commit, Landing, commits, patch_ids
from smith.git.repository import Repository

# GitHub rebases no more than a hundred commits; a head further away is a fork of another history.
_MOST_COMMITS = 100
# A rebase writes all its commits at one time. A gap means two landings: stacked pull requests look like one otherwise.
_ONE_REBASE = timedelta(hours=1)


@dataclass(frozen=True)
class Run:
    """The landings of one pull request, oldest first. ``proved`` where every patch id agrees."""

    number: int
    landings: tuple[Landing, ...]
    proved: bool
    certain: bool


@dataclass
class _Free:
    """Landings that nothing explains yet, by position in the first-parent line and by what a rebase keeps."""

    at: dict[int, Landing] = field(default_factory=dict)
    index: defaultdict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, position: int, landing: Landing) -> None:
        self.at[position] = landing
        for key in _keys(landing):
            self.index[key].append(position)

    def like(self, commit: Commit) -> list[int]:
        """Positions of landings with the author and the subject or the date of ``commit``, newest first."""
        return sorted({position for key in _keys(commit) for position in self.index.get(key, ())})


def rebased(
    repo: Repository,
    landings: Sequence[Landing],
    explained: set[str],
    heads: Mapping[int, str],
    on_missing: Callable[[], None] = lambda: None,
) -> list[Run]:
    """The pull requests of ``heads`` that landed as runs of ``landings`` (newest first) not in ``explained``."""
    free = _Free()
    for position, landing in enumerate(landings):
        if landing.oid not in explained and len(landing.parents) == 1:
            free.add(position, landing)
    if not free.at or not heads:
        return []
    branches = _branches(repo, landings, heads, free)
    wanted = {commit.oid for own in branches.values() for commit in own}
    likely = {free.at[position].oid for own in branches.values() for one in own for position in free.like(one)}
    ids = patch_ids(repo, [*sorted(wanted), *sorted(likely)], on_missing=on_missing)
    runs = [run for number, own in branches.items() if (run := _match(number, own, free, ids))]
    return _settle(runs)


def _branches(
    repo: Repository, landings: Sequence[Landing], heads: Mapping[int, str], free: _Free
) -> dict[int, list[Commit]]:
    """The own commits of each head, oldest first, of those heads that can have landed."""
    tips = {one.oid: one for one in commits(repo, heads.values(), walk=False)}
    hopeful = {
        number: oid for number, oid in heads.items() if oid in tips and (_is_merge(tips[oid]) or free.like(tips[oid]))
    }
    # A rewritten history shares no commit with old heads; what it kept still has its dates.
    kept = {_identity(landing) for landing in landings}
    walked: dict[str, Commit] = {}
    for commit in commits(repo, sorted(set(hopeful.values())), exclude=[landings[0].oid]):
        if _identity(commit) not in kept:
            walked[commit.oid] = commit
    order = {oid: index for index, oid in enumerate(walked)}
    branches: dict[int, list[Commit]] = {}
    for number, oid in hopeful.items():
        own = _own(oid, walked)
        if 0 < len(own) <= _MOST_COMMITS and free.like(own[-1] if (own := _oldest_first(own, order)) else tips[oid]):
            branches[number] = own
    return branches


def _own(head: str, walked: Mapping[str, Commit]) -> list[Commit]:
    """What ``head`` reaches within ``walked``, without merges; more than can have landed is cut short."""
    own: list[Commit] = []
    seen: set[str] = set()
    pending = [head]
    while pending and len(own) <= _MOST_COMMITS:
        oid = pending.pop()
        if oid in seen or oid not in walked:
            continue
        seen.add(oid)
        pending += walked[oid].parents
        if not _is_merge(walked[oid]):
            own.append(walked[oid])
    return own


def _oldest_first(own: Iterable[Commit], order: Mapping[str, int]) -> list[Commit]:
    return sorted(own, key=lambda commit: -order[commit.oid])


def _match(number: int, own: Sequence[Commit], free: _Free, ids: Mapping[str, str]) -> Run | None:
    """The longest run of landings that ends in the newest commit of ``own``."""
    # A commit whose change had landed before becomes empty and is dropped by the rebase.
    commits = [one for one in own if one.oid in ids]
    best: Run | None = None
    if not commits:
        return None
    for end in free.like(commits[-1]):
        run = _run(number, commits, end, free, ids)
        if run and (best is None or (len(run.landings), run.proved) > (len(best.landings), best.proved)):
            best = run
    return best


def _run(number: int, own: Sequence[Commit], end: int, free: _Free, ids: Mapping[str, str]) -> Run | None:
    landed: list[Landing] = []
    proved = True
    left = list(own)
    position = end
    while left and (landing := free.at.get(position)) and _one_rebase(landed, landing):
        same = _same(left[-1], landing, ids)
        if same is None:
            break
        proved = proved and same
        landed.append(landing)
        left.pop()
        position += 1
    # A head made after the landing is a copy of it (a back-port), not its source.
    if not landed or own[-1].oid == landed[0].oid or _when(own[-1]) > _when(landed[0]):
        return None
    # What the branch holds besides must have landed before, as in a stack of pull requests.
    if not all(any(p >= position and _same(one, free.at[p], ids) for p in free.like(one)) for one in left):
        return None
    return Run(number, tuple(reversed(landed)), proved, certain=proved)


def _one_rebase(landed: Sequence[Landing], older: Landing) -> bool:
    if not landed:
        return True
    newer = landed[-1]
    return newer.committer == older.committer and abs(_when(newer) - _when(older)) <= _ONE_REBASE


def _same(commit: Commit, landing: Landing, ids: Mapping[str, str]) -> bool | None:
    """True where the patches agree, False where only author, date and subject do, None where neither does."""
    ours, theirs = ids.get(commit.oid), ids.get(landing.oid)
    if ours is not None and ours == theirs:
        return True
    words = [(one.author, one.subject, _date(one.authored)) for one in (commit, landing)]
    return False if words[0] == words[1] else None


def _settle(runs: Iterable[Run]) -> list[Run]:
    """Give each landing to one pull request: the longest run, then the proved one, then the later number.

    Of two heads with the same commits the later one took over from the earlier, which was closed.
    """
    taken: set[str] = set()
    settled: list[Run] = []
    for run in sorted(runs, key=lambda run: (-len(run.landings), not run.proved, -run.number)):
        oids = {landing.oid for landing in run.landings}
        if not oids & taken:
            taken |= oids
            settled.append(run)
    return settled


def _is_merge(commit: Commit) -> bool:
    return len(commit.parents) > 1


def _keys(commit: Commit) -> tuple[tuple[str, str], tuple[str, str]]:
    return (commit.author, commit.subject), (commit.author, f"at {commit.authored}")


def _identity(commit: Commit) -> tuple[str, str, str, str]:
    return commit.author, commit.authored, commit.committed, commit.subject


def _date(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _when(commit: Commit) -> datetime:
    return _date(commit.committed)
