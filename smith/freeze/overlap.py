"""What a patch adds, and how much of it another text gives away: lines, runs of tokens, identifiers.

Runs of tokens (n-grams, "shingles") are compared as by Broder, "On the resemblance and containment of documents"
(1997): containment of one text in another, without regard to layout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

PROSE_RUN = 8
"""So many words in a row that a text shares with the added lines are no accident."""
CODE_RUN = 6
"""So many tokens of code in a row: shorter ones (``x.to(tl.float32)``) are idioms."""
COPY_RUN = 16
"""Tokens in a row that make a piece of code a copy: a report may call a function as a hidden test does."""
LEAST_TOKENS = 4
"""Lines with fewer tokens (``else:``, ``return x``) say nothing."""

_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|[^\s\w]")
_WORD = re.compile(r"[^\W_]+(?:_\w+)*|\w+")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_TARGET = re.compile(r'^\+\+\+ (?:"?b/(.*?)"?|/dev/null)\t?$')
_BOILERPLATE = re.compile(
    r"^(?:from\b.*\bimport\b|import\b|#\s*include\b|#pragma\b|using\b|namespace\b|@|#!|\"{3}|'{3})|"
    r"copyright|licen[sc]e|spdx|all rights reserved|warrant|redistribut",
    re.IGNORECASE,
)


def tokens(text: str) -> list[str]:
    """Words, numbers and single signs of a text, in order."""
    return _TOKEN.findall(text)


def words(text: str) -> list[str]:
    """The words of a text in lower case, signs left out."""
    return [word.lower() for word in _WORD.findall(text)]


def runs(parts: list[str], length: int) -> set[tuple[str, ...]]:
    """All runs of ``length`` parts."""
    return set(zip(*(parts[at:] for at in range(length)), strict=False))


def squeezed(line: str) -> str:
    """A line without indentation and with single spaces."""
    return " ".join(line.split())


def added_lines(patch: bytes) -> dict[str, tuple[str, ...]]:
    """Path to the lines that a git patch adds there. Binary changes add none."""
    found: dict[str, list[str]] = {}
    path, old, new = "", 0, 0
    for line in patch.decode("utf-8", "replace").split("\n"):
        if old > 0 or new > 0:
            sign = line[:1]
            old -= sign in ("-", " ", "")
            new -= sign in ("+", " ", "")
            if sign == "+":
                found.setdefault(path, []).append(line[1:].rstrip("\r"))
        elif head := _HUNK.match(line):
            old, new = (int(n) if n is not None else 1 for n in head.groups())
        elif target := _TARGET.match(line):
            path = target[1] or ""
    return {path: tuple(lines) for path, lines in found.items()}


def telling(line: str) -> bool:
    """Whether a line says something of its own: neither import nor licence, and of :data:`LEAST_TOKENS` tokens."""
    parts = tokens(line)
    named = sum(1 for part in parts if part[0].isalnum() or part[0] == "_")
    return len(parts) >= LEAST_TOKENS and named >= 3 and not _BOILERPLATE.search(line)


@dataclass(frozen=True)
class Addition:
    """What a patch adds to files whose text ``before`` is known."""

    lines: Mapping[str, tuple[str, ...]]
    before: Mapping[str, str]
    """Texts of the changed files as they were."""

    @cached_property
    def known_lines(self) -> frozenset[str]:
        """Lines of the changed files as they were, layout aside."""
        return frozenset(squeezed(line) for text in self.before.values() for line in text.splitlines())

    @cached_property
    def distinct(self) -> dict[str, str]:
        """Each telling added line that the changed files did not have already (moved code), to the path it is in."""
        found: dict[str, str] = {}
        for path, lines in self.lines.items():
            for line in map(squeezed, lines):
                if telling(line) and line not in self.known_lines:
                    found.setdefault(line, path)
        return found

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """Identifiers in added lines that no changed file had."""
        added = {name for lines in self.lines.values() for line in lines for name in _IDENTIFIER.findall(line)}
        return frozenset(added - {n for text in self.before.values() for n in _IDENTIFIER.findall(text)})

    @cached_property
    def code_runs(self) -> set[tuple[str, ...]]:
        """Runs of :data:`CODE_RUN` tokens that are new in the changed files."""
        return self._runs(tokens, CODE_RUN)

    @cached_property
    def prose_runs(self) -> set[tuple[str, ...]]:
        """Runs of :data:`PROSE_RUN` words that are new in the changed files."""
        return self._runs(words, PROSE_RUN)

    @cached_property
    def short_runs(self) -> set[tuple[str, ...]]:
        """Runs of four tokens that are new in the changed files: what a piece of inline code is held against."""
        return self._runs(tokens, 4)

    @cached_property
    def long_runs(self) -> set[tuple[str, ...]]:
        """Runs of :data:`COPY_RUN` tokens that are new in the changed files."""
        return self._runs(tokens, COPY_RUN)

    def _runs(self, cut: Callable[[str], list[str]], length: int) -> set[tuple[str, ...]]:
        fresh = {run for lines in self.lines.values() for run in runs(cut("\n".join(lines)), length)}
        for text in self.before.values():
            fresh -= runs(cut(text), length)
        return fresh

    def copied_by(self, text: str) -> bool:
        """Whether a text repeats so much of what is added that it is a copy, whoever wrote it first."""
        return not self.long_runs.isdisjoint(runs(tokens(text), COPY_RUN))

    def quoted_by(self, text: str) -> bool:
        """Whether a text repeats a long run of what is added, as code or in words."""
        as_code = (run for run in runs(tokens(text), CODE_RUN) if run in self.code_runs)
        if any(sum(1 for t in run if not t[0].isalnum() and t[0] != "_") >= 2 for run in as_code):
            return True
        return not self.prose_runs.isdisjoint(runs(words(text), PROSE_RUN))
