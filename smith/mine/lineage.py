"""Lineages: pull requests that must stay on one side of a held-out split, since one gives the other away.

A pull request, its reverts and re-lands, and what followed up on it are one lineage. What names another pull request as
its cause is tied to it always. A fix that names none is tied to the last change of the same kernel, if that landed some
days before at most: later fixes mostly repair something older, and through kernels that everybody changes they would
glue a whole history together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from smith.mine.reverts import Reverts
from smith.mine.signals import KernelId, Landed, follow_renames
from smith.records.candidate import Kind

FOLLOW_UP_DAYS = 14
"""A fix of a kernel within so many days of the kernel's last change is taken for a follow-up of it."""
_LONGEST_BODY = 60_000
_LARGEST_BY_KERNEL = 8
"""Lineages are not made larger than this by sharing a kernel alone."""

# What is wrong, followed by where that comes from.
_WRONG = ("regress(?:ion|ed|es)", "bugs?", "breakage", "issues?", "broken?", "introduced", "caused", "added", "missed")
_RELATED = (
    r"follow[- ]?(?:ing|s)?[- ]?(?:up)?(?:\s+(?:to|on|of|for|fix(?:es)?(?:\s+(?:to|for))?))?",
    *(rf"{one}\s+(?:\w+\s+)?(?:from|by|in|of|since|with|after)" for one in (*_WRONG, r"left\s+over")),
    r"continu(?:es|ation)(?:\s+(?:of|on))?",
    r"part\s+\d\s+of",
    r"amends?",
    r"complet(?:es|ing)",
    r"re-?lands?",
    r"re-?appl(?:y|ies)",
    r"reverts?",
    r"supersedes?",
    r"replaces?",
    r"stacked\s+on(?:\s+top\s+of)?",
    r"builds?\s+on(?:\s+top\s+of)?",
    r"back-?ports?(?:\s+of)?",
    r"forward-?ports?(?:\s+of)?",
    r"cherry-?pick(?:ed|s)?(?:\s+(?:of|from))?",
)
# Of text in lower case: only a pattern whose every alternative begins with a letter is searched for at full speed, so
# that a word begins there is looked at afterwards.
_NAMED = re.compile(
    rf"(?:{'|'.join(_RELATED)})"
    r"\s*:?\s*(?:the\s+)?(?:pr\s*|pull\s+request\s*)?\(?(?:[\w.-]+/[\w.-]+)?#(?P<number>\d+)\b"
)
_IN_WORD = re.compile(r"\w")
_ELSEWHERE = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)#\d+\Z")


def group(
    repo: str,
    history: Sequence[Landed],
    reverts: Reverts,
    *,
    days: int = FOLLOW_UP_DAYS,
    followed: Sequence[frozenset[KernelId]] | None = None,
) -> dict[int, str]:
    """The lineage of each pull request of ``history`` (in landing order, oldest first): ``owner/name#N``.

    ``N`` is the smallest number in it. A pull request that lands later never parts a lineage. It joins one that is
    there, or begins its own; only where it names members of several are they united, and the larger names go.
    ``followed`` is what :func:`~smith.mine.signals.follow_renames` gives of ``history``, where it is known already.
    """
    sets = _Sets(one.number for one in history)
    for one in history:
        for other in _named(repo, one, reverts):
            if other in sets:
                sets.unite(one.number, other)
    for fix, before in _follow_ups(history, followed or follow_renames(history), timedelta(days=days)):
        # Kernels tie only what no name has tied: two lineages that both stand for something stay apart.
        if sets.size(fix) == 1 and sets.size(before) < _LARGEST_BY_KERNEL:
            sets.unite(fix, before)
    return {one.number: f"{repo}#{sets.smallest(one.number)}" for one in history}


def mentioned(repo: str, title: str, body: str) -> tuple[int, ...]:
    """Numbers that a title or body names as what it follows up on, in the words' order."""
    found: list[int] = []
    for text in (title, body):
        if "#" not in text:
            continue
        # With one blank everywhere: bodies are wrapped, and the pattern allows blanks in many places.
        for match in _whole_words(" ".join(text[:_LONGEST_BODY].lower().split())):
            elsewhere = _ELSEWHERE.search(match[0])
            if elsewhere is None or elsewhere["repo"].lower() == repo.lower():
                found.append(int(match["number"]))
    return tuple(dict.fromkeys(found))


def _whole_words(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while (match := _NAMED.search(text, at)) is not None:
        begins = match.start() == 0 or _IN_WORD.match(text, match.start() - 1) is None
        at = match.end() if begins else match.start() + 1
        if begins:
            yield match


def _named(repo: str, one: Landed, reverts: Reverts) -> Iterator[int]:
    yield from (other for other in (reverts.takes_back.get(one.number), reverts.lands_again.get(one.number)) if other)
    # A mass edit (a release, a merge of branches) quotes what it contains.
    if not one.mass:
        yield from (other for other in mentioned(repo, one.title, one.body) if other != one.number)


def _follow_ups(
    history: Sequence[Landed], followed: Sequence[frozenset[KernelId]], within: timedelta
) -> Iterator[tuple[int, int]]:
    """Each fix with the last change of one of its kernels, where that is recent; of several, what shares most."""
    last: dict[KernelId, int] = {}
    moments = [datetime.fromisoformat(one.merged_at) for one in history]
    for position, (one, kernels) in enumerate(zip(history, followed, strict=True)):
        if one.mass:
            continue
        if one.kind is Kind.FIX:
            shared: dict[int, int] = {}
            for kernel in kernels:
                if (at := last.get(kernel)) is not None and moments[position] - moments[at] <= within:
                    shared[at] = shared.get(at, 0) + 1
            if shared:
                nearest = max(shared, key=lambda at: (shared[at], at))
                yield one.number, history[nearest].number
        last.update(dict.fromkeys(kernels, position))


class _Sets:
    """Disjoint sets of numbers (union by size, with path halving)."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._parent = {number: number for number in numbers}
        self._size = dict.fromkeys(self._parent, 1)
        self._smallest = dict(self._parent)

    def __contains__(self, number: int) -> bool:
        return number in self._parent

    def size(self, number: int) -> int:
        return self._size[self._root(number)]

    def smallest(self, number: int) -> int:
        return self._smallest[self._root(number)]

    def unite(self, one: int, other: int) -> None:
        large, small = self._root(one), self._root(other)
        if large == small:
            return
        if self._size[large] < self._size[small]:
            large, small = small, large
        self._parent[small] = large
        self._size[large] += self._size[small]
        self._smallest[large] = min(self._smallest[large], self._smallest[small])

    def _root(self, number: int) -> int:
        parent = self._parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number


def members(lineages: Mapping[int, str]) -> dict[str, tuple[int, ...]]:
    """Lineage to its pull requests, by number."""
    found: dict[str, list[int]] = {}
    for number in sorted(lineages):
        found.setdefault(lineages[number], []).append(number)
    return {lineage: tuple(numbers) for lineage, numbers in found.items()}
