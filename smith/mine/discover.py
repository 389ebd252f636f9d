"""Find the merged pull requests of a branch, from git alone.

A pull request lands in one of three ways: as one commit whose subject ends in ``(#N)`` (squash), as a merge commit
that says ``Merge pull request #N`` (merge), or commit by commit (rebase). The first two are read off the landed
commit; the third is proved by comparing what landed with the commits of ``refs/pull/N/head`` (:mod:`.rebase`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smith.git.history import Change, Landing, changes_between, first_parent
from smith.git.repository import Repository
from smith.mine.rebase import Run, rebased
from smith.records.pull_request import Evidence, MergeForm, PullRequest

_LAST_NUMBER = re.compile(r"\s*\(#(\d+)\)\s*\Z")
_MERGE_SUBJECT = re.compile(r"Merge pull request #(\d+) from \S")
_PULL_REF = re.compile(r"refs/pull/(\d+)/head\Z")
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
    landings = tuple(first_parent(repo, branch))
    heads = pull_heads(repo)
    found = _stated(landings, heads)
    explained = {landing.oid for _, landing in found.values()}
    open_heads = {number: oid for number, oid in heads.items() if number not in found}
    merged = [_direct(form, landing, number, heads) for number, (form, landing) in found.items()]
    merged += _from_runs(repo, rebased(repo, landings, explained, open_heads), landings, heads)
    position = {landing.oid: index for index, landing in enumerate(landings)}
    merged.sort(key=lambda one: position[one.pull_request.merged])
    return History(landings, tuple(merged), heads)


def pull_heads(repo: Repository) -> dict[int, str]:
    """Number to head for every ``refs/pull/N/head`` that is present."""
    matched = ((_PULL_REF.match(name), oid) for name, oid in repo.refs("refs/pull").items())
    return {int(match[1]): oid for match, oid in matched if match}


def numbered(landing: Landing) -> tuple[MergeForm, int] | None:
    """The form and number that the landed commit itself states; only the *last* ``(#N)`` of a subject counts."""
    if len(landing.parents) > 1 and (match := _MERGE_SUBJECT.match(landing.subject)):
        return MergeForm.MERGE, int(match[1])
    if match := _LAST_NUMBER.search(landing.subject):
        return MergeForm.SQUASH, int(match[1])
    return None


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
        title, _, body = landing.body.partition("\n")
        return title.strip() or landing.subject, body.strip("\n")
    title, body = _LAST_NUMBER.sub("", landing.subject), landing.body
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
