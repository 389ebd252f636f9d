"""Merges without a work tree: what git itself would make of two commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smith import temporary
from smith.git.objects import plain
from smith.git.repository import OID, Repository
from smith.git.sources import scratch

_AT_ONCE = 200


def merge_trees(
    repo: Repository, pairs: Sequence[tuple[str, str]], *, on_missing: Callable[[], None] = lambda: None
) -> list[str | None]:
    """The tree of the clean merge of each pair of commits; None for a conflict, or where it cannot be made here.

    ``on_missing`` is called for one that cannot.

    One ``git merge-tree`` for many pairs where git can (2.39 and newer). It needs the blobs that both sides changed;
    what it writes goes to a place that is removed. No merge driver runs, whatever attributes and configuration say.
    """
    found: list[str | None] = []
    if not pairs:
        return found
    with temporary.folder("merge") as place:
        view = plain(scratch(repo, place / "objects"))
        for start in range(0, len(pairs), _AT_ONCE):
            some = pairs[start : start + _AT_ONCE]
            lines = "".join(f"{one} {other}\n" for one, other in some)
            done = view.run("merge-tree", "--write-tree", "-z", "--stdin", "--no-messages", input=lines.encode())
            answers = _answers(done.stdout.data) if done.ok else []
            if len(answers) == len(some):
                found += answers
            else:  # one that dies takes the others with it
                found += [_single(view, one, other, on_missing) for one, other in some]
    return found


def _answers(data: bytes) -> list[str | None]:
    """``<clean> NUL <tree> NUL [conflicted files]... NUL`` for each pair."""
    answers: list[str | None] = []
    fields = data.split(b"\0")
    position = 0
    while position + 1 < len(fields):
        clean, tree = fields[position], fields[position + 1].decode()
        if clean not in (b"0", b"1") or not OID.match(tree):
            return []
        answers.append(tree if clean == b"1" else None)
        position += 2
        while position < len(fields) and fields[position]:
            position += 1
        position += 1
    return answers


def _single(repo: Repository, one: str, other: str, on_missing: Callable[[], None]) -> str | None:
    done = repo.run("merge-tree", "--write-tree", "-z", "--no-messages", one, other)
    if done.status not in (0, 1):  # 1 is a conflict
        on_missing()
    tree = done.stdout.data.split(b"\0")[0].decode("ascii", "replace").strip()
    return tree if done.status == 0 and OID.match(tree) else None
