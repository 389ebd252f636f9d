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
    dirs: Pattern | None = None
    needs: tuple[Pattern, ...] = ()
    lacks: Pattern | None = None
    body: Pattern | None = None

    def matches(self, path: str, text: str) -> bool:
        """Whether the file at ``path`` (in lower case) with ``text`` (without comments) is of this language."""
        if not path.endswith(self.suffixes):
            return False
        if self.dirs and not any(self.dirs.match(folder) for folder in path.split("/")[:-1]):
            return False
        if not all(pattern.search(text) for pattern in self.needs):
            return False
        return not (self.lacks and self.lacks.search(text))


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
    single = {key: re.compile(row[key]) for key in ("lacks", "body", "kernel") if key in row}
    # Several patterns rather than one with look-aheads, which is quadratic in the file where it fails.
    needs = tuple(re.compile(pattern) for pattern in row.get("needs", ()))
    return SourceRule(row["language"], tuple(row["suffixes"]), dirs=_globs(row.get("dirs")), needs=needs, **single)
