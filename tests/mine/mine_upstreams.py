"""Small real upstreams for the tests: every merge style, deterministic dates, no files written but objects."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smith.git.repository import Repository, clean_environment

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def {name}(x, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x + offs, tl.load(x + offs, mask=offs < n) + {value}, mask=offs < n)


def launch(x):
    {name}[(1,)](x, {host}, BLOCK=16)
"""


def kernel(name: str = "add", value: object = 1, host: object = 8) -> str:
    """A Python file with one Triton kernel and a host function beside it."""
    return KERNEL.format(name=name, value=value, host=host)


Tree = dict[str, str | bytes]


@dataclass
class Upstream:
    """A bare repository under construction. ``main`` is the newest landed commit; dates advance by an hour a commit."""

    repo: Repository
    main: str = ""
    trees: dict[str, Tree] = field(default_factory=dict)
    clock: int = 1_700_000_000

    @classmethod
    def make(cls, path: Path, files: Mapping[str, str | bytes] | None = None) -> Upstream:
        upstream = cls(Repository.init_bare(path))
        upstream.push("Initial commit", dict(files or {"pkg/add.py": kernel(), "README.md": "hello\n"}))
        return upstream

    def commit(
        self,
        message: str,
        changes: Mapping[str, str | bytes | None],
        parents: Sequence[str],
        *,
        author: str = "Ann",
        authored: int | None = None,
        at: int | None = None,
        committer: str = "GitHub",
    ) -> str:
        """Write a commit on ``parents``; ``None`` deletes a path. Returns its id."""
        tree = dict(self.trees[parents[0]]) if parents else {}
        for path, content in changes.items():
            if content is None:
                tree.pop(path, None)
            else:
                tree[path] = content
        self.clock += 3600
        when = self.clock if at is None else at
        lines = [
            b"commit refs/scratch/tip",
            b"mark :1",
            f"author {author} <{author.lower()}@example.org> {authored or when} +0000".encode(),
            f"committer {committer} <{committer.lower()}@example.org> {when} +0000".encode(),
            _data(message.encode()),
            *([f"from {parents[0]}".encode()] if parents else []),
            *(f"merge {parent}".encode() for parent in parents[1:]),
            b"deleteall",
        ]
        for path, content in sorted(tree.items()):
            body = content.encode() if isinstance(content, str) else content
            lines += [b"M 100644 inline " + _quoted(path), _data(body)]
        lines += [b"get-mark :1", b"done", b""]
        reset = b"reset refs/scratch/tip\nfrom 0000000000000000000000000000000000000000\n\n"
        done = subprocess.run(
            self.repo.argv("fast-import", "--quiet", "--done", "--force", "--cat-blob-fd=1"),
            input=reset + b"\n".join(lines),
            env=clean_environment(),
            capture_output=True,
            check=True,
        )
        oid = done.stdout.split()[0].decode()
        self.trees[oid] = tree
        return oid

    def push(self, message: str, changes: Mapping[str, str | bytes | None], **how: object) -> str:
        """Land a commit on main directly, as a squash merge does."""
        self._land(self.commit(message, changes, [self.main] if self.main else [], **how))  # type: ignore[arg-type]
        return self.main

    def squash(self, number: int, title: str, changes: Mapping[str, str | bytes | None], body: str = "") -> str:
        """A pull request of one commit, landed by squashing."""
        self.pull(number, [(title, changes)])
        return self.push(f"{title} (#{number})\n\n{body}", changes)

    def merge(self, number: int, title: str, changes: Mapping[str, str | bytes | None]) -> str:
        """A pull request landed by a merge commit."""
        head = self.pull(number, [("work", changes)])
        message = f"Merge pull request #{number} from ann/branch\n\n{title}\n"
        self._land(self.commit(message, changes, [self.main, head]))
        return self.main

    def pull(
        self,
        number: int,
        commits: Sequence[tuple[str, Mapping[str, str | bytes | None]]],
        *,
        base: str = "",
        author: str = "Ann",
    ) -> str:
        """Give ``refs/pull/N/head`` these commits on ``base`` (default: main as it is)."""
        tip = base or self.main
        for message, changes in commits:
            tip = self.commit(message, changes, [tip], author=author, committer=author)
        self.ref(f"refs/pull/{number}/head", tip)
        return tip

    def rebase(
        self, number: int, commits: Sequence[tuple[str, Mapping[str, str | bytes | None]]], *, base: str = ""
    ) -> list[str]:
        """A pull request landed by rebasing; returns the landed commits, oldest first."""
        self.pull(number, commits, base=base)
        start = self.clock - 3600 * (len(commits) - 1)
        self.clock += 3600
        landed = []
        for index, (message, changes) in enumerate(commits):
            written = start + 3600 * index
            oid = self.commit(message, changes, [self.main], authored=written, at=self.clock, committer="Max")
            self._land(oid)
            landed.append(oid)
        return landed

    def ref(self, name: str, oid: str) -> None:
        self.repo.git("update-ref", name, oid)

    def _land(self, oid: str) -> None:
        self.main = oid
        self.ref("refs/heads/main", oid)


def _data(content: bytes) -> bytes:
    return b"data %d\n%s" % (len(content), content)


def _quoted(path: str) -> bytes:
    raw = path.encode("utf-8", "surrogateescape")
    return (
        b'"'
        + b"".join(b"\\%03o" % byte if byte < 33 or byte > 126 or byte in b'"\\' else bytes([byte]) for byte in raw)
        + b'"'
    )
