"""Find the merged pull requests of a branch, from git alone.

A pull request lands in one of three ways: as one commit whose subject ends in ``(#N)`` (squash), as a merge commit
that says ``Merge pull request #N`` (merge), or commit by commit (rebase). The first two are read off the landed
commit; the third is proved by comparing what landed with the commits of ``refs/pull/N/head`` (:mod:`.rebase`). A merge
or a squash whose words have lost the number is recognised by the head that it merges (:mod:`.lost`).

A head that merely is an ancestor of the branch has not landed: that is what a closed pull request looks like whose
branch was moved to the main line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from smith.git.history import Change, Landing, changes_between, first_parent
from smith.git.repository import Repository
from smith.mine.lost import lost_numbers
from smith.mine.rebase import Run, rebased
from smith.records.pull_request import Evidence, MergeForm, PullRequest

# Plain digits, and so few that they can be a number; zero is none. Blanks around are stripped before: a pattern that
# may begin with many of them takes forever on a subject of nothing else.
_LAST_NUMBER = re.compile(r"\([#!]([1-9][0-9]{0,8})\)\Z")
_FIRST_NUMBER = re.compile(r"Merged PR ([1-9][0-9]{0,8}): ")
# How GitHub, Gitea and Bitbucket word a merge; GitLab says it in the last line of the body.
_MERGE_SUBJECT = re.compile(
    r"Merge pull request #(?P<github>[1-9][0-9]{0,8}) from \S"
    r"|Merge pull request '(?P<title>.*)' \(#(?P<gitea>[1-9][0-9]{0,8})\) from \S"
    r"|Merged in \S{1,300} \(pull request #(?P<bitbucket>[1-9][0-9]{0,8})\)"
)
_MERGE_REQUEST = re.compile(r"^See merge request \S{0,300}!([1-9][0-9]{0,8})\Z", re.MULTILINE)
_PULL_REF = re.compile(r"refs/(?:pull|merge-requests)/([1-9][0-9]{0,8})/head\Z")
_ELLIPSIS = ("…", "...")


@dataclass(frozen=True)
class Merged:
    """A pull request with what it changed on the first-parent line."""

    pull_request: PullRequest
    landings: tuple[Landing, ...]
    """The landed commits, oldest first."""
    changes: tuple[Change, ...]

    @property
    def number(self) -> int:
        return self.pull_request.number


@dataclass(frozen=True)
class History:
    """All of a branch: every landing, newest first, and the pull requests among them in the same order."""

    landings: tuple[Landing, ...]
    merged: tuple[Merged, ...]
    heads: Mapping[int, str]
    """Pull request number to the object id of its head, for every pull ref that is present."""


def discover(repo: Repository, branch: str) -> History:
    """Read the history of ``branch`` and recognise its pull requests.

    Raises :class:`~smith.errors.BadInput` where ``branch`` names no commit.
    """
    return recognise(repo, tuple(first_parent(repo, branch)), pull_heads(repo))


def recognise(
    repo: Repository,
    landings: tuple[Landing, ...],
    heads: Mapping[int, str],
    on_missing: Callable[[], None] = lambda: None,
) -> History:
    """Recognise the pull requests among ``landings`` (all of a branch, newest first).

    ``on_missing`` is called where blobs are missing that could prove one.
    """
    found = _stated(landings, heads)
    merged = [_direct(form, landing, number, heads) for number, (form, landing) in found.items()]
    merged += _merged_heads(landings, _open(heads, merged), _explained(merged), heads)
    runs = rebased(repo, landings, _explained(merged), _open(heads, merged), on_missing)
    merged += _from_runs(repo, runs, landings, heads)
    squashes = [landing for form, landing in found.values() if form is MergeForm.SQUASH]
    lost = lost_numbers(repo, landings, _explained(merged), _open(heads, merged), squashes, on_missing)
    for number, landing in lost.items():
        record = _record(
            number, *_words(MergeForm.SQUASH, landing), MergeForm.SQUASH, Evidence.SAME_TREE, (landing,), heads
        )
        merged.append(Merged(record, (landing,), landing.changes))
    position = {landing.oid: index for index, landing in enumerate(landings)}
    merged.sort(key=lambda one: position[one.pull_request.merged])
    return History(landings, tuple(merged), heads)


def pull_heads(repo: Repository) -> dict[int, str]:
    """Number to head for every ``refs/pull/N/head`` or ``refs/merge-requests/N/head`` that is present."""
    refs = {**repo.refs("refs/merge-requests"), **repo.refs("refs/pull")}
    matched = ((_PULL_REF.match(name), oid) for name, oid in refs.items())
    return {int(match[1]): oid for match, oid in matched if match}


def numbered(landing: Landing) -> tuple[MergeForm, int] | None:
    """The form and number that the landed commit itself states; only the *last* ``(#N)`` of a subject counts."""
    if len(landing.parents) > 1:
        if match := _MERGE_SUBJECT.match(landing.subject):
            return MergeForm.MERGE, int(match["github"] or match["gitea"] or match["bitbucket"])
        if match := _MERGE_REQUEST.search(landing.body.rstrip()):
            return MergeForm.MERGE, int(match[1])
    if match := _LAST_NUMBER.search(landing.subject.rstrip()) or _FIRST_NUMBER.match(landing.subject):
        return MergeForm.SQUASH, int(match[1])
    return None


def _explained(merged: Sequence[Merged]) -> set[str]:
    return {landing.oid for one in merged for landing in one.landings}


def _open(heads: Mapping[int, str], merged: Sequence[Merged]) -> dict[int, str]:
    known = {one.number for one in merged}
    return {number: oid for number, oid in heads.items() if number not in known}


def _merged_heads(
    landings: Sequence[Landing], open_heads: Mapping[int, str], explained: set[str], heads: Mapping[int, str]
) -> list[Merged]:
    """Merges that state no number: told by the head that is their second parent (or a later one)."""
    # Of two heads at one commit the later one took over from the earlier, which was closed.
    numbers = {oid: number for number, oid in sorted(open_heads.items())}
    line = {landing.oid for landing in landings}
    found: dict[int, Landing] = {}
    for landing in reversed(landings):
        if landing.oid not in explained:
            for parent in landing.parents[1:]:
                if parent in numbers and parent not in line:
                    found.setdefault(numbers[parent], landing)
    merged = []
    for number, landing in found.items():
        words = _words(MergeForm.MERGE, landing)
        record = _record(number, *words, MergeForm.MERGE, Evidence.MERGED_HEAD, (landing,), heads)
        merged.append(Merged(record, (landing,), landing.changes))
    return merged


def _stated(landings: Sequence[Landing], heads: Mapping[int, str]) -> dict[int, tuple[MergeForm, Landing]]:
    """Number to its first landing, of those that the landed commits state."""
    found: dict[int, tuple[MergeForm, Landing]] = {}
    # Oldest first: a number that appears again (a fix-up, a follow-up pushed with the same subject) landed before.
    for landing in reversed(landings):
        # A root has no base that a task could start from.
        if landing.base and (said := numbered(landing)) and said[1] not in found:
            found[said[1]] = (said[0], landing)
    # Every pull request keeps its ref on the server, issues have none. Where a mirror holds most of the refs, a number
    # without one is an issue that was pushed with its reference; newer numbers may not have been fetched yet.
    present = sum(number in heads for number in found)
    if heads and 2 * present >= len(found):
        newest = max(heads)
        return {number: one for number, one in found.items() if number in heads or number > newest}
    return found


def _direct(form: MergeForm, landing: Landing, number: int, heads: Mapping[int, str]) -> Merged:
    title, body = _words(form, landing)
    evidence = Evidence.MERGE_SUBJECT if form is MergeForm.MERGE else Evidence.SUBJECT
    return Merged(_record(number, title, body, form, evidence, (landing,), heads), (landing,), landing.changes)


def _words(form: MergeForm, landing: Landing) -> tuple[str, str]:
    """Title and body as the pull request had them."""
    if form is MergeForm.MERGE:
        stated = _MERGE_SUBJECT.match(landing.subject)
        if stated and stated["title"]:
            return stated["title"], landing.body
        title, _, body = _MERGE_REQUEST.sub("", landing.body.rstrip()).partition("\n")
        return title.strip() or landing.subject, body.strip("\n")
    title = _FIRST_NUMBER.sub("", _LAST_NUMBER.sub("", landing.subject.rstrip()).rstrip())
    body = landing.body
    # A long title is cut in the subject, and goes on in the first line of the body.
    first, _, rest = body.partition("\n")
    if title.endswith(_ELLIPSIS) and first.startswith(_ELLIPSIS):
        return title.rstrip("….") + first.lstrip("…."), rest.strip("\n")
    return title, body


def _from_runs(
    repo: Repository, runs: Sequence[Run], landings: Sequence[Landing], heads: Mapping[int, str]
) -> list[Merged]:
    several = [run for run in runs if len(run.landings) > 1]
    trees = {landing.oid: landing.tree for landing in landings}
    pairs = [(trees[run.landings[0].base or ""], run.landings[-1].tree) for run in several]
    whole = dict(zip((run.number for run in several), changes_between(repo, pairs), strict=True))
    return [_from_run(run, whole.get(run.number), heads) for run in runs]


def _from_run(run: Run, changes: tuple[Change, ...] | None, heads: Mapping[int, str]) -> Merged:
    first, last = run.landings[0], run.landings[-1]
    body = first.body if len(run.landings) == 1 else "\n".join(landing.subject for landing in run.landings)
    evidence = Evidence.PATCH_ID if run.proved else Evidence.AUTHOR_AND_SUBJECT
    record = _record(run.number, first.subject, body, MergeForm.REBASE, evidence, run.landings, heads, run.certain)
    return Merged(record, run.landings, last.changes if changes is None else changes)


def _record(
    number: int,
    title: str,
    body: str,
    form: MergeForm,
    evidence: Evidence,
    landings: Sequence[Landing],
    heads: Mapping[int, str],
    certain: bool = True,
) -> PullRequest:
    first, last = landings[0], landings[-1]
    assert first.base is not None, "a root is no landing of a pull request"
    return PullRequest(
        number=number,
        title=readable(title),
        body=readable(body),
        author=readable(first.author),
        form=form,
        evidence=evidence,
        certain=certain,
        base=first.base,
        merged=last.oid,
        head=heads.get(number),
        merged_at=last.committed,
        commits=len(landings),
    )


def readable(text: str) -> str:
    """Text without lone surrogates: words, unlike paths, need not be given back to git."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
