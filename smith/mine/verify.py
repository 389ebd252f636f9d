"""Merge base and head of pull requests again, and compare with what landed."""

from __future__ import annotations

from collections.abc import Sequence

from smith.git.merges import merge_trees
from smith.git.objects import present
from smith.git.repository import Repository
from smith.mine.discover import Merged
from smith.mine.survey import Progress
from smith.records.pull_request import Verified

_AT_ONCE = 100


def verify_all(repo: Repository, merged: Sequence[Merged], progress: Progress | None = None) -> dict[int, Verified]:
    """Merge base and head of each again, without a work tree, and compare with the tree that landed."""
    found: dict[int, Verified] = {}
    heads = {head for one in merged if (head := one.pull_request.head)}
    here = present(repo, heads) if heads else set()
    known = [one for one in merged if one.pull_request.head in here]
    for start in range(0, len(known), _AT_ONCE):
        some = known[start : start + _AT_ONCE]
        pairs = [(one.pull_request.base, one.pull_request.head or "") for one in some]
        for one, tree in zip(some, merge_trees(repo, pairs), strict=True):
            same = Verified.SAME_TREE if tree == one.landings[-1].tree else Verified.OTHER_TREE
            found[one.number] = Verified.CONFLICT if tree is None else same
        if progress is not None:
            progress("merging again", start + len(some), len(known))
    return {one.number: found.get(one.number, Verified.NO_HEAD) for one in merged}
