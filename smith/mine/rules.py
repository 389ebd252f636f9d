"""The table of rules by which changed files are told apart, from ``rules.toml``, parsed once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import PurePosixPath

from smith.records.candidate import Role
from smith.records.config import PathRow, RuleTable, SourceRow

Pattern = re.Pattern[str]


@dataclass(frozen=True)
class PathRule:
    """One ``[[path]]`` rule: every key that is given must match."""

    role: Role
    dirs: Pattern | None = None
    names: Pattern | None = None
    under: tuple[str, ...] = ()

    def matches(self, path: str, folders: Sequence[str], name: str) -> bool:
        """Whether ``path``, in lower case, is meant; ``folders`` and ``name`` are its parts."""
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
    always: Pattern | None = None
    never: Pattern | None = None
    dirs: Pattern | None = None
    includes: Pattern | None = None
    words: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    lacks_includes: Pattern | None = None
    lacks_words: tuple[str, ...] = ()

    def is_kernel(self, header: str, body: str) -> bool:
        """Whether a function of such a file is one of its kernels."""
        if self.always is not None and self.always.search(header):
            return True
        if self.never is not None and (self.never.search(header) or self.never.search(body)):
            return False
        return bool(self.kernel.search(header) and (self.body is None or self.body.search(body)))

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
    for word in words:  # noqa: SIM110 - called so often that a generator would take as long as the search
        if word in text:
            return True
    return False


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
    """Everything in ``rules.toml``, and what a data repository adds to it."""

    paths: tuple[PathRule, ...]
    decorators: dict[str, str]
    """Qualified name of a decorator to kernel language."""
    sources: tuple[SourceRule, ...]
    binaries: dict[str, str]
    """Suffix of compiled kernels to their language."""
    limits: Limits
    digest: bytes
    """Of the whole table."""

    def role(self, path: str) -> Role | None:
        """The role that ``path`` alone tells, None where the content decides."""
        # A history names the same files again and again.
        if path not in self._roles:
            lowered = path.lower()
            *folders, name = lowered.split("/")
            self._roles[path] = next((one.role for one in self.paths if one.matches(lowered, folders, name)), None)
        return self._roles[path]

    @cached_property
    def _roles(self) -> dict[str, Role | None]:
        return {}

    @cached_property
    def source_suffixes(self) -> frozenset[str]:
        """Suffixes of files that can hold kernels."""
        return frozenset({".py", *(suffix for rule in self.sources for suffix in rule.suffixes)})

    @property
    def languages(self) -> frozenset[str]:
        """Every kernel language that the table knows."""
        written = frozenset(self.decorators.values()) | {rule.language for rule in self.sources}
        return written | frozenset(self.binaries.values())

    def binary(self, path: str) -> str | None:
        """The language of the compiled kernels at ``path``, where it is such a file."""
        return self.binaries.get(_suffix(path))

    def may_hold_kernels(self, path: str) -> bool:
        """Whether a file of this name can hold kernels at all."""
        return _suffix(path) in self.source_suffixes


@lru_cache(maxsize=50_000)
def _suffix(path: str) -> str:
    return PurePosixPath(path.lower()).suffix


def load(extra: RuleTable | None = None) -> Rules:
    """The shipped table, with the rows of ``extra`` before it."""
    return _merged(extra or RuleTable())


@lru_cache(maxsize=8)
def _merged(extra: RuleTable) -> Rules:
    shipped = RuleTable.loads((files("smith.mine") / "rules.toml").read_bytes(), "rules.toml")
    limits = {**shipped.limits.model_dump(), **extra.limits.model_dump(exclude_none=True)}
    # What comes first wins: a decorator's language as well.
    decorators = {n: row.language for row in (*shipped.decorator, *extra.decorator) for n in row.names}
    table = hashlib.sha256(shipped.dumps() + extra.dumps())
    return Rules(
        paths=tuple(_path_rule(row) for row in (*extra.path, *shipped.path)),
        decorators=decorators,
        sources=tuple(_source_rule(row) for row in (*extra.source, *shipped.source)),
        binaries={s: row.language for row in (*shipped.binary, *extra.binary) for s in row.suffixes},
        limits=Limits(**limits),
        digest=table.digest(),
    )


def _globs(patterns: Sequence[str] | None) -> Pattern | None:
    return re.compile("|".join(translate(pattern) for pattern in patterns)) if patterns else None


def _compiled(pattern: str | None) -> Pattern | None:
    return None if pattern is None else re.compile(pattern)


def _path_rule(row: PathRow) -> PathRule:
    return PathRule(row.role, _globs(row.dirs), _globs(row.names), row.under)


def _source_rule(row: SourceRow) -> SourceRule:
    return SourceRule(
        language=row.language,
        suffixes=row.suffixes,
        kernel=re.compile(row.kernel),
        body=_compiled(row.body),
        always=_compiled(row.always),
        never=_compiled(row.never),
        dirs=_globs(row.dirs),
        includes=_globs(row.includes),
        words=row.words,
        also=row.also,
        lacks_includes=_globs(row.lacks_includes),
        lacks_words=row.lacks_words,
    )
