"""The hunks of a reference patch, each taken back alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from smith.git.patches import diff
from smith.git.repository import Repository

_HUNK = re.compile(rb"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)


@dataclass(frozen=True)
class Hunk:
    """One hunk of what leads from the solution back to the start. ``patch`` takes it back in the solution."""

    path: str
    line: int
    """Its first changed line in the solution, from 1; 0 where it has none (a binary file)."""
    patch: bytes
    lines: frozenset[int] = frozenset()
    """The solution's lines that it takes away."""


def hunks(repo: Repository, start: str, solution: str, path: str) -> Iterator[Hunk]:
    """The hunks of one changed file, in order; a binary file is one, an empty one and a mode have none.

    They are cut out of the patch that leads back, so that each applies to the solution as it stands.
    """
    patch = diff(repo, solution, start, [path])
    starts = [match.start() for match in _HUNK.finditer(patch)]
    if not starts:
        if b"\nGIT binary patch\n" in patch:
            yield Hunk(path, 0, patch)
        return
    header = patch[: starts[0]]
    for begin, end in zip(starts, [*starts[1:], len(patch)], strict=True):
        body = patch[begin:end]
        first, lines = _lines(body)
        yield Hunk(path, first, header + body, lines)


def _lines(body: bytes) -> tuple[int, frozenset[int]]:
    """The first line of the solution that a hunk changes, and all that it takes away."""
    match = _HUNK.match(body)
    assert match is not None
    at, first, gone = int(match[1]), 0, set()
    for line in body.split(b"\n")[1:]:
        if line[:1] in (b"-", b"+") and not first:
            first = at
        if line[:1] == b"-":
            gone.add(at)
        at += line[:1] in (b" ", b"-")
    return first, frozenset(gone)
