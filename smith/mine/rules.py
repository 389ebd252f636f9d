"""The table of rules by which changed files are told apart, from ``rules.toml``, parsed once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from smith.records.candidate import Role

Pattern = re.Pattern[str]


@dataclass(frozen=True)
class PathRule:
    """One ``[[path]]`` rule: every key that is given must match."""

    role: Role
    dirs: Pattern | None = None
    names: Pattern | None = None
    under: tuple[str, ...] = ()

    def matches(self, path: str) -> bool:
        """Whether ``path``, in lower case, is meant."""
        *folders, name = path.split("/")
        if self.under and not path.startswith(self.under):
            return False
        if self.names and not self.names.match(name):
            return False
        return not self.dirs or any(self.dirs.match(folder) for folder in folders)


@dataclass(frozen=True)
class SourceRule:
    """One ``[[source]]`` rule: which C-like files hold kernels of a language, and which functions those are."""

    language: str
    suffixes: tuple[str, ...]
    kernel: Pattern
    body: Pattern | None = None
    dirs: Pattern | None = None
    includes: Pattern | None = None
    words: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    lacks_includes: Pattern | None = None
    lacks_words: tuple[str, ...] = ()

    def matches(self, path: str, text: str, includes: Sequence[str]) -> bool:
        """Whether the file at ``path`` (lower case) with ``text`` (without comments) and ``includes`` is meant."""
        if not path.endswith(self.suffixes):
            return False
        if self.dirs and not any(self.dirs.match(folder) for folder in path.split("/")[:-1]):
            return False
        if self.also and not _any_in(self.also, text):
            return False
        asked = bool(self.includes or self.words)
        if asked and not (_any_matches(self.includes, includes) or _any_in(self.words, text)):
            return False
        return not (_any_matches(self.lacks_includes, includes) or _any_in(self.lacks_words, text))


def _any_in(words: Sequence[str], text: str) -> bool:
    return any(word in text for word in words)


def _any_matches(pattern: Pattern | None, names: Sequence[str]) -> bool:
    return pattern is not None and any(pattern.match(name) for name in names)


@dataclass(frozen=True)
class Limits:
    """Sizes from which on something is treated as a whole."""

    largest_source: int
    mass_files: int
    mass_kernel_files: int


@dataclass(frozen=True)
class Rules:
    """Everything in ``rules.toml``."""

    paths: tuple[PathRule, ...]
    decorators: dict[str, str]
    """Qualified name of a decorator to kernel language."""
    sources: tuple[SourceRule, ...]
    limits: Limits

    def role(self, path: str) -> Role | None:
        """The role that ``path`` alone tells, None where the content decides."""
        lowered = path.lower()
        return next((rule.role for rule in self.paths if rule.matches(lowered)), None)

    @property
    def source_suffixes(self) -> tuple[str, ...]:
        """Suffixes of files that can hold kernels."""
        return (".py", *sorted({suffix for rule in self.sources for suffix in rule.suffixes}))

    @property
    def languages(self) -> frozenset[str]:
        """Every kernel language that the table knows."""
        return frozenset(self.decorators.values()) | {rule.language for rule in self.sources}

    def may_hold_kernels(self, path: str) -> bool:
        """Whether a file of this name can hold kernels at all."""
        return PurePosixPath(path.lower()).suffix in self.source_suffixes


@cache
def load() -> Rules:
    """The shipped table."""
    table = tomllib.loads((files("smith.mine") / "rules.toml").read_text("utf-8"))
    return Rules(
        paths=tuple(_path_rule(row) for row in table["path"]),
        decorators={name: row["language"] for row in table["decorator"] for name in row["names"]},
        sources=tuple(_source_rule(row) for row in table["source"]),
        limits=Limits(**table["limits"]),
    )


def _globs(patterns: Sequence[str] | None) -> Pattern | None:
    return re.compile("|".join(translate(pattern) for pattern in patterns)) if patterns else None


def _path_rule(row: dict[str, Any]) -> PathRule:
    return PathRule(Role(row["role"]), _globs(row.get("dirs")), _globs(row.get("names")), tuple(row.get("under", ())))


def _source_rule(row: dict[str, Any]) -> SourceRule:
    return SourceRule(
        language=row["language"],
        suffixes=tuple(row["suffixes"]),
        kernel=re.compile(row["kernel"]),
        body=re.compile(row["body"]) if "body" in row else None,
        dirs=_globs(row.get("dirs")),
        includes=_globs(row.get("includes")),
        words=tuple(row.get("words", ())),
        also=tuple(row.get("also", ())),
        lacks_includes=_globs(row.get("lacks_includes")),
        lacks_words=tuple(row.get("lacks_words", ())),
    )
