"""``smith.toml``: marks a data repository, and holds its settings."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from smith.records.base import Document, Record
from smith.records.candidate import Flag, Kind, Role
from smith.records.gateway import RateRow
from smith.records.prices import PriceRow


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from error
    return text


Word = Annotated[str, StringConstraints(min_length=1)]
Regex = Annotated[str, AfterValidator(_pattern)]


class PathRow(Record):
    """By its path alone a file has a role. Every key that is given must match; all is compared in lower case."""

    role: Role
    dirs: tuple[str, ...] | None = None
    """Glob patterns; some folder of the path matches one of them."""
    names: tuple[str, ...] | None = None
    """Glob patterns; the file name matches one of them."""
    under: tuple[Word, ...] = ()
    """Path prefixes."""

    @model_validator(mode="after")
    def _means_something(self) -> PathRow:
        if not (self.dirs or self.names or self.under):
            raise ValueError("a row needs dirs, names or under: it would be about every file")
        return self


class DecoratorRow(Record):
    """A Python function is a kernel where a decorator resolves, through the file's imports, to one of ``names``."""

    language: Word
    names: tuple[Word, ...]


class SourceRow(Record):
    """Which C-like files hold kernels of a language, and which functions those are."""

    language: Word
    suffixes: tuple[Word, ...]
    kernel: Regex
    """Marks the functions that are kernels, in their header."""
    body: Regex | None = None
    """Must be found in their body besides."""
    always: Regex | None = None
    """Marks a function as a kernel in its header, whatever its body holds."""
    never: Regex | None = None
    """Found in header or body, it marks host code, unless ``always`` fits."""
    dirs: tuple[str, ...] | None = None
    includes: tuple[str, ...] | None = None
    """Globs; of these and ``words`` one must be found, if any are given."""
    words: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """One of these words must be found besides."""
    lacks_includes: tuple[str, ...] | None = None
    lacks_words: tuple[str, ...] = ()


class BinaryRow(Record):
    """Files that are compiled kernels."""

    language: Word
    suffixes: tuple[Word, ...]


class LimitsRow(Record):
    """Sizes from which on something is treated as a whole."""

    largest_source: int | None = Field(default=None, gt=0)
    """Bytes; larger files are data, whatever their suffix."""
    mass_files: int | None = Field(default=None, gt=0)
    """A landing that touches so many files is a mass edit."""
    mass_kernel_files: int | None = Field(default=None, gt=0)


class RuleTable(Record):
    """How changed files are told apart: the shipped table, or rows that come before it."""

    path: tuple[PathRow, ...] = ()
    decorator: tuple[DecoratorRow, ...] = ()
    source: tuple[SourceRow, ...] = ()
    binary: tuple[BinaryRow, ...] = ()
    limits: LimitsRow = LimitsRow()


class MineConfig(Record):
    """The table ``[mine]``: what ``smith mine`` does where its options do not say otherwise."""

    languages: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    operators: tuple[str, ...] = ()
    reject: tuple[Flag, ...] = ()
    """Flags that are left out besides the recommended ones."""
    allow: tuple[Flag, ...] = ()
    """Recommended flags that are not left out."""
    rules: RuleTable = RuleTable()


class TimingConfig(Record):
    """The table ``[timing]``: what speed is measured under."""

    foreign: float = Field(default=0.10, ge=0, le=1)
    """Share of all processors that others may use while a block is timed; above it the block is void. 1 on a machine
    that is never idle: then only noise tells."""
    gpu_cache: Literal["cold", "warm"] = "cold"
    """Whether a GPU's caches are flushed before every timed call, or hold what the making of its inputs left there."""


class Config(Document):
    """The settings of a data repository."""

    mine: MineConfig = MineConfig()
    timing: TimingConfig = TimingConfig()
    prices: dict[Word, PriceRow] = {}
    """By ``provider/model``, exactly as the model is called for."""
    rates: dict[Word, RateRow] = {}
    """By provider, or by the host of its endpoint."""
