"""Which pull requests were taken back, and which landed again.

Only a title says that a commit is a revert: the phrase "This reverts commit" stands in the bodies of many pull requests
that are none, because squashed branches keep it. Commits pushed without a pull request revert as well.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from smith.mine.discover import History, Merged

_TITLE = re.compile(r"^\W*reverts?\W", re.IGNORECASE)
_QUOTED = re.compile(r"^\W*reverts?\W+[\"“'`](?P<title>.*)[\"”'`]", re.IGNORECASE)
_AGAIN = re.compile(
    r"^\W*(?:re-?lands?|re-?appl(?:y|ies))(?:\W*[\"“'`](?P<quoted>.*)[\"”'`]|\W+(?P<plain>.*))", re.IGNORECASE
)
_NUMBER = re.compile(r"#([0-9]{1,9})\b")
_OWN_NUMBER = re.compile(r"\(#[0-9]{1,9}\)\Z")
_COMMIT = re.compile(r"This reverts (?:commit |PR )?([0-9a-f]{7,40})")
_BODY_NUMBER = re.compile(r"\bReverts? (?:[\w.-]{1,100}/[\w.-]{1,100})?#([0-9]{1,9})\b")


@dataclass(frozen=True)
class Reverts:
    """``reverted``: number to what took it back. ``relands``: numbers that landed something reverted again."""

    reverted: Mapping[int, str]
    relands: Mapping[int, str]
    takes_back: Mapping[int, int] = field(default_factory=dict)
    """Number of a revert to the pull request that it took back."""
    lands_again: Mapping[int, int] = field(default_factory=dict)
    """Number of a re-land to the reverted pull request whose change it brings back; the first of a row of reverts."""


def find(history: History) -> Reverts:
    """Read the reverts and re-lands of a history, oldest first."""
    by_commit = {landing.oid: one for one in history.merged for landing in one.landings}
    by_number = {one.number: one for one in history.merged}
    by_title: dict[str, Merged] = {}
    commits = sorted(by_commit)
    reverted: dict[int, str] = {}
    relands: dict[int, str] = {}
    takes_back: dict[int, int] = {}
    lands_again: dict[int, int] = {}
    for landing in reversed(history.landings):
        own = by_commit.get(landing.oid)
        subject = own.pull_request.title if own else landing.subject
        if _TITLE.search(subject):
            target = _target(subject, landing.body, own, commits, by_commit, by_number, by_title)
            if target is not None and (own is None or target.number != own.number):
                by = f"#{own.number}" if own else landing.oid[:12]
                reverted[target.number] = by
                if target.number in lands_again:
                    # What takes back a re-land takes back what that brought.
                    reverted[lands_again[target.number]] = by
                elif target.number in takes_back:
                    # The revert of a revert brings the first pull request back, under its own number.
                    first = takes_back[target.number]
                    if own is not None:
                        relands[own.number] = f"takes back the revert #{target.number}"
                        lands_again[own.number] = lands_again.get(first, first)
                if own is not None:
                    takes_back[own.number] = target.number
        elif own is not None:
            earlier = by_title.get(_again(subject))
            if earlier is not None and earlier.number in reverted and own.number != earlier.number:
                relands[own.number] = f"lands #{earlier.number} again"
                lands_again[own.number] = lands_again.get(earlier.number, earlier.number)
        if own is not None:
            by_title[_key(subject)] = own
    return Reverts(reverted, relands, takes_back, lands_again)


def _target(
    subject: str,
    body: str,
    own: Merged | None,
    commits: Sequence[str],
    by_commit: Mapping[str, Merged],
    by_number: Mapping[int, Merged],
    by_title: Mapping[str, Merged],
) -> Merged | None:
    """The pull request that a revert takes back: by commit, by number, by the title in quotation marks."""
    words = f"{body}\n{own.pull_request.body}" if own else body
    for match in _COMMIT.finditer(words):
        at = bisect_left(commits, match[1])
        if at < len(commits) and commits[at].startswith(match[1]) and by_commit[commits[at]] is not own:
            return by_commit[commits[at]]
    subject = subject if own else _without_number(subject)
    quoted = _QUOTED.search(subject)
    # What is quoted ends in the number of what is taken back, however many reverts it quotes in turn.
    inside = _NUMBER.findall(quoted["title"])[-1:] if quoted else []
    for number in (*_BODY_NUMBER.findall(words)[:1], *inside, *_NUMBER.findall(subject)[:1]):
        if int(number) in by_number:
            return by_number[int(number)]
    return by_title.get(_key(quoted["title"])) if quoted else None


def _again(title: str) -> str:
    match = _AGAIN.search(title)
    return _key((match["quoted"] or match["plain"] or "") if match else title)


def _key(title: str) -> str:
    return " ".join(_without_number(title).lower().split())


def _without_number(title: str) -> str:
    return _OWN_NUMBER.sub("", title.rstrip()).rstrip()
