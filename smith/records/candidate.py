"""What mining finds: candidates with what they changed, and a reason for every pull request left out."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from smith.records.base import Document, Oid, Record
from smith.records.enrichment import Enrichment
from smith.records.pull_request import Evidence, MergeForm, Verified
from smith.records.signals import Signals, TestFile


class Kind(StrEnum):
    """What a pull request is for."""

    FIX = "fix"
    FEATURE = "feature"
    PERF = "perf"
    REFACTOR = "refactor"
    TUNING = "tuning"
    MAINTENANCE = "maintenance"
    REVERT = "revert"
    RELAND = "reland"
    OTHER = "other"


class Role(StrEnum):
    """What a changed file is for."""

    KERNEL = "kernel"
    HOST = "host"
    CONFIG = "config"
    """Tuned configurations: data that kernels read."""
    BUILD = "build"
    TEST = "test"
    TEST_SUPPORT = "test_support"
    BENCHMARK = "benchmark"
    DOCS = "docs"
    CI = "ci"
    VENDORED = "vendored"
    GENERATED = "generated"
    OTHER = "other"


class Flag(StrEnum):
    """What filters look at."""

    REVERT = "revert"
    REVERTED = "reverted"
    """Taken back later."""
    RELAND = "reland"
    MAINTENANCE = "maintenance"
    MASS_EDIT = "mass_edit"
    """Touches so many files that it changes everything a little."""
    HOST_ONLY = "host_only"
    """Files with kernels change, but no kernel's code."""
    TEXT_ONLY = "text_only"
    """Kernels change in comments, docstrings or layout at most."""
    BINARY_ONLY = "binary_only"
    """Every changed kernel is a compiled code object."""
    NO_TESTS = "no_tests"
    """No test file changes."""
    UNCERTAIN = "uncertain"
    """How it landed is likely, not proved."""
    BACKPORT = "backport"
    """The default branch has it too, and this is another branch."""


RECOMMENDED_REJECTS = (Flag.REVERT, Flag.REVERTED, Flag.MAINTENANCE, Flag.MASS_EDIT, Flag.BINARY_ONLY)
"""Flags that are left out unless allowed."""

REFERENCE_ROLES = frozenset(
    {Role.KERNEL, Role.HOST, Role.CONFIG, Role.BUILD, Role.VENDORED, Role.GENERATED, Role.OTHER}
)
"""Roles whose changes make up a reference patch."""
HIDDEN_ROLES = frozenset({Role.TEST, Role.TEST_SUPPORT})
"""Roles whose changes are hidden tests."""


class ChangedFile(Record):
    """One file that a pull request changed. Paths are as in git, undecodable bytes surrogate-escaped."""

    path: str
    old_path: str | None = None
    change: Literal["added", "modified", "deleted", "renamed", "type"]
    role: Role
    language: str | None = None
    """Kernel language, where the file holds kernels: triton, gluon, hip, cuda, native, ..."""


class KernelChange(Record):
    """The kernels of one file that a pull request changed."""

    path: str
    language: str
    symbols: tuple[str, ...] = ()
    """Qualified names of kernels in which a line changed, on the merged side (the base side for removed ones)."""
    text_only: tuple[str, ...] | None = None
    """Those of ``symbols`` whose code is the same (comments, docstrings or layout changed). None: there are none, or
    it is a mass edit."""

    @property
    def code(self) -> tuple[str, ...]:
        """Those of ``symbols`` whose code changed."""
        if not self.text_only:
            return self.symbols
        return tuple(symbol for symbol in self.symbols if symbol not in self.text_only)


class Candidate(Document):
    """A merged pull request that can become a task."""

    repo: str
    """``owner/name``."""
    url: str
    """Where upstream is fetched from."""
    pr: int = Field(ge=1)
    title: str
    body: str = ""
    author: str = ""
    form: MergeForm
    evidence: Evidence
    certain: bool = True
    verified: Verified | None = None
    """What merging base and head again comes to; None: it was not asked for."""
    base: Oid
    merged: Oid
    head: Oid | None = None
    merged_at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
    kind: Kind
    kind_evidence: str = ""
    languages: tuple[str, ...] = ()
    kernels: tuple[KernelChange, ...] = ()
    source_files: tuple[str, ...] = ()
    """Changed files that are neither tests, docs, CI nor benchmarks."""
    test_files: tuple[str, ...] = ()
    """Changed test files that still exist after the merge."""
    files: tuple[ChangedFile, ...] = ()
    flags: tuple[Flag, ...] = ()
    signals: Signals | None = None
    """Hints for choosing; None in records of an older smith."""
    lineage: str | None = None
    """``owner/name#N``: pull requests of one lineage give each other away, and stay on one side of a split. None where
    only single numbers were mined."""
    split: Literal["train", "held_out"] | None = None
    """Its side, where a share was held out."""
    enrichment: Enrichment | None = None
    """What the forge says besides, where it was asked (``--github``)."""
    tests: tuple[TestFile, ...] = ()
    """Tests that exercise the changed kernels, the surest first, changed or not."""


class Rejection(Record):
    """A merged pull request that was left out, and why."""

    pr: int
    title: str = ""
    reason: str
    """Typed: docs_only, ci_only, tests_only, no_kernel_change, rename_only, maintenance, revert, reverted, ..."""
    detail: str = ""


class Mined(Record):
    """All of a history: ``seen`` equals candidates plus rejections."""

    repo: str
    seen: int
    candidates: tuple[Candidate, ...]
    rejections: tuple[Rejection, ...]
    notes: tuple[str, ...] = ()
    """What a reader should know besides, such as a history that was rewritten since it was mined last."""
