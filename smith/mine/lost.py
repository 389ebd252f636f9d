"""Squashed landings whose words have lost the number: told by what they contain.

A squash is the merge of the pull request's head into the commit before it, so its tree is that merge's tree. Merging
every head into every landing would take hours; a head that was squashed holds, at every path that the landing changed,
the very blob that landed, and one process answers that for all pairs.

What somebody squashed at home and pushed was not merged, though the content is the same: the pull request was closed.
So the forge must have committed it, as it did the other squashes, or its words must name the pull request.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from smith.git.history import NULL_OID, Commit, Landing, commits
from smith.git.merges import merge_trees
from smith.git.objects import plain
from smith.git.repository import Repository

# A head is older than its landing, and rarely by more.
_PATIENCE = timedelta(days=120)
_MOST_PAIRS = 20_000
_MOST_PATHS = 40


def lost_numbers(
    repo: Repository,
    landings: Sequence[Landing],
    explained: set[str],
    heads: Mapping[int, str],
    squashes: Collection[Landing],
    on_missing: Callable[[], None] = lambda: None,
) -> dict[int, Landing]:
    """Number to landing (newest first) of the squashes not in ``explained`` that one of ``heads`` became.

    ``squashes`` are those that state their number: they show who commits what is merged through the forge.
    Without git 2.38 or newer, or without the blobs that a merge needs, nothing is found.
    """
    common = Counter(one.committer for one in squashes).most_common(1)
    forge = common[0][0] if common else None
    free = [one for one in landings if one.oid not in explained and len(one.parents) == 1 and one.changes]
    tips = {one.oid: one for one in commits(repo, heads.values(), walk=False)}
    pairs = [(n, tips[oid], one) for n, oid, one in _likely(free, heads, tips) if _landed(n, one, forge)]
    pairs = [pair for pair, same in zip(pairs, _hold(repo, pairs), strict=True) if same]
    merged = merge_trees(repo, [(one.parents[0], tip.oid) for _, tip, one in pairs], on_missing=on_missing)
    found: dict[int, Landing] = {}
    taken: set[str] = set()
    # The later number first: it took over from an earlier one with the same content, which was closed.
    for (number, _, landing), tree in sorted(zip(pairs, merged, strict=True), key=lambda item: -item[0][0]):
        if tree == landing.tree and number not in found and landing.oid not in taken:
            found[number] = landing
            taken.add(landing.oid)
    return found


def _landed(number: int, landing: Landing, forge: str | None) -> bool:
    words = f"{landing.subject}\n{landing.body}"
    return landing.committer == forge or re.search(rf"[#!]{number}\b", words) is not None


def _likely(
    free: Sequence[Landing], heads: Mapping[int, str], tips: Mapping[str, Commit]
) -> Iterator[tuple[int, str, Landing]]:
    """Pairs of one author in which the head is a little older than the landing, closest in time first."""
    by_author: defaultdict[str, list[Landing]] = defaultdict(list)
    for landing in free:
        by_author[landing.email].append(landing)
    line = {landing.oid for landing in free}
    pairs = []
    for number, oid in heads.items():
        tip = tips.get(oid)
        # A head on the main line itself has landed as something else.
        for landing in by_author.get(tip.email, ()) if tip and oid not in line else ():
            age = (
                datetime.fromisoformat(landing.committed) - datetime.fromisoformat(tip.committed) if tip else _PATIENCE
            )
            if timedelta(0) <= age < _PATIENCE:
                pairs.append((age, number, oid, landing))
    pairs.sort(key=lambda pair: pair[0])
    for _, number, oid, landing in pairs[:_MOST_PAIRS]:
        yield number, oid, landing


def _hold(repo: Repository, pairs: Iterable[tuple[int, Commit, Landing]]) -> list[bool]:
    """Whether each head holds what each landing brought, at the paths that it changed (the first few)."""
    asked: list[list[tuple[str, str]]] = []
    for _, tip, landing in pairs:
        wanted = [(f"{tip.tree}:{c.path}", NULL_OID if c.status == "D" else c.new_oid) for c in landing.changes]
        asked.append([one for one in wanted[:_MOST_PATHS] if "\n" not in one[0]])
    lines = "".join(f"{name}\n" for each in asked for name, _ in each)
    if not lines:
        return [False] * len(asked)
    asking = lines.encode("utf-8", "surrogateescape")
    out = plain(repo).git("cat-file", "--batch-check=%(objectname)", "--buffer", input=asking)
    answers = iter(out.split(b"\n"))
    # A list: every answer is taken, whatever the first of them says.
    return [all([_is(next(answers), oid) for _, oid in each]) and bool(each) for each in asked]


def _is(answer: bytes, oid: str) -> bool:
    return answer.endswith(b" missing") if oid == NULL_OID else answer == oid.encode()
