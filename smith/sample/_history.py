"""Read the sample's history and turn it into one ``git fast-import`` stream.

The rules are GitHub's. A pull request is a branch of commits on some earlier commit of main, and
``refs/pull/N/head`` names its tip. Landing it applies the same patches to the tip of main: as one commit
(*squash*), as a merge commit with two parents (*merge*), or one by one with a new committer and date
(*rebase*). *closed* pull requests never land, *direct* commits never were a pull request.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any, Literal

from smith.sample._patches import Tree, apply_patch

__all__ = ["Change", "Commit", "import_stream", "read_history"]

Style = Literal["direct", "squash", "merge", "rebase", "closed"]
_GITHUB = "GitHub <noreply@github.com>"


@dataclass(frozen=True)
class Commit:
    """One commit of a branch: its patch, its author date (git's raw format) and its message."""

    patch: bytes
    when: str
    message: str


@dataclass(frozen=True)
class Change:
    """One entry of ``history.toml``: a pull request, or commits pushed to main directly."""

    style: Style
    author: str
    commits: tuple[Commit, ...]
    number: int = 0
    title: str = ""
    body: str = ""
    branch: str = ""
    behind: int = 0
    """How many changes had landed on main since the branch was cut."""
    merged_by: str = ""
    merged_at: str = ""

    @property
    def squash_message(self) -> str:
        """The message GitHub proposes for a squash merge."""
        body = f"\n{self.body.strip()}\n" if self.body.strip() else ""
        return f"{self.title} (#{self.number})\n{body}"

    @property
    def merge_message(self) -> str:
        """The message GitHub writes for a merge commit."""
        return f"Merge pull request #{self.number} from {self.branch}\n\n{self.title}\n"


def read_history(data: Traversable) -> tuple[Change, ...]:
    """Read ``history.toml`` and the patches beside it, in the order in which they reached main."""
    document = tomllib.loads((data / "history.toml").read_text("utf-8"))
    people: dict[str, str] = document["people"]
    return tuple(_change(row, people, data / "patches") for row in document["change"])


def _change(row: dict[str, Any], people: dict[str, str], patches: Traversable) -> Change:
    def read(commit: dict[str, str]) -> Commit:
        return Commit((patches / commit["patch"]).read_bytes(), commit["when"], commit["message"])

    fields = {**row, "commits": tuple(map(read, row["commits"])), "author": people[row["author"]]}
    if "merged_by" in row:
        fields["merged_by"] = people[row["merged_by"]]
    return Change(**fields)


@dataclass(frozen=True)
class _Node:
    """A commit in the stream: its mark and its tree."""

    mark: int
    tree: Tree


class _Stream:
    """Collects fast-import commands; every commit gets the next mark."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._marks = 0

    def commit(self, parents: list[_Node], tree: Tree, message: str, author: str, committer: str) -> _Node:
        """Add one commit; ``author`` and ``committer`` are ``Name <email> seconds offset``."""
        self._marks += 1
        # Every commit of the stream is made on main, which is pointed at its real tip in the end.
        head = f"commit refs/heads/main\nmark :{self._marks}\nauthor {author}\ncommitter {committer}\n"
        self.parts += [head.encode(), _data(message.encode())]
        for word, parent in zip(("from", "merge"), parents, strict=False):
            self.parts.append(f"{word} :{parent.mark}\n".encode())
        self.parts += _delta(parents[0].tree if parents else {}, tree)
        return _Node(self._marks, tree)

    def replay(self, base: list[_Node], change: Change, committer: str = "") -> list[_Node]:
        """Add the commits of ``change`` one by one on ``base``; the author commits unless told otherwise."""
        tip = base
        for commit in change.commits:
            tree = apply_patch(tip[0].tree if tip else {}, commit.patch)
            author = f"{change.author} {commit.when}"
            tip = [self.commit(tip, tree, commit.message, author, committer or author)]
        return tip

    def reset(self, ref: str, node: _Node) -> None:
        """Point ``ref`` at ``node``."""
        self.parts.append(f"reset {ref}\nfrom :{node.mark}\n".encode())


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _delta(before: Tree, after: Tree) -> Iterator[bytes]:
    """The file commands that lead from one tree to the next, deletions first."""
    for path in sorted(before.keys() - after.keys()):
        yield f"D {path}\n".encode()
    for path, entry in sorted(after.items()):
        if before.get(path) != entry:
            yield f"M {entry.mode} inline {path}\n".encode() + _data(entry.data)


def import_stream(history: tuple[Change, ...]) -> bytes:
    """Return the fast-import stream of main and of every pull request's head."""
    stream = _Stream()
    landed: list[_Node] = []
    for change in history:
        tip, base = landed[-1:], landed[-1 - change.behind :][:1]
        if change.style == "direct":
            landed += stream.replay(tip, change)
            continue
        (head,) = stream.replay(base, change)
        stream.reset(f"refs/pull/{change.number}/head", head)
        if change.style != "closed":
            landed += _land(stream, tip, head, change)
    stream.reset("refs/heads/main", landed[-1])
    return b"".join(stream.parts) + b"done\n"


def _land(stream: _Stream, tip: list[_Node], head: _Node, change: Change) -> list[_Node]:
    """Land ``change`` on ``tip`` the way its style says."""
    merger = f"{change.merged_by} {change.merged_at}"
    if change.style == "rebase":
        return stream.replay(tip, change, committer=merger)
    tree = tip[0].tree
    for commit in change.commits:
        tree = apply_patch(tree, commit.patch)
    github = f"{_GITHUB} {change.merged_at}"
    if change.style == "squash":
        author = f"{change.author} {change.merged_at}"
        return [stream.commit(tip, tree, change.squash_message, author, github)]
    return [stream.commit([*tip, head], tree, change.merge_message, merger, github)]
