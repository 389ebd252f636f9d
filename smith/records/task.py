"""A task bundle: ``task.toml`` (Harbor's schema 1.4, ours below ``[metadata.smith]``) and the hidden selection."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from smith.records.base import Document, Oid, Record, TaskId
from smith.records.candidate import KernelChange, Kind


def _empty(value: Any) -> bool:
    """Left out of the file: bundles without any are the same bytes as before the field was there."""
    return not value


class Source(Record):
    """Where a task comes from, by commit and tree."""

    repo: str
    url: str
    pr: int
    base: Oid
    base_tree: Oid
    """Tree of the base commit upstream."""
    tree: Oid
    """Tree that the task starts from; equal to ``base_tree`` unless files had to be left out, or the variant starts
    elsewhere: then it is that tree with ``solution/start.patch`` applied."""
    left_out: tuple[str, ...] = ()
    """Files of the base tree whose content the mirror lacks."""
    merged: Oid
    merged_at: str
    license: str | None = None


class Excluded(Record):
    """A changed file that is neither part of the reference patch nor a hidden test, e.g. documentation."""

    path: str
    role: str


class InterfaceItem(Record):
    """Something that hidden tests use and the starting tree lacks; the instruction names it."""

    kind: Literal["module", "function", "class", "name", "value", "error"]
    """``value``: a string that tests pass or look up; ``error``: an exception that a call must raise."""
    path: str
    """The reference's file that defines it."""
    module: str = ""
    """The dotted name under which tests import it."""
    name: str = ""
    """Qualified; empty for a module."""
    signature: str = ""
    """As the reference writes it, without body; empty where it has none."""
    missing: tuple[str, ...] = ()
    """What of it the start lacks, in words (``parameter eps``, ``method reset``); empty where it lacks all of it."""

    def __str__(self) -> str:
        named = ".".join(part for part in (self.module, self.name) if part) if self.kind != "value" else repr(self.name)
        return f"{self.kind} {named}{': ' + ', '.join(self.missing) if self.missing else ''}"


class LeakKind(StrEnum):
    """Where (a part of) the answer was found."""

    SOURCE = "source"
    """A source file of the starting tree: mostly a sibling that the reference began as a copy of."""
    VENDORED = "vendored"
    DOCUMENT = "document"
    """Documentation or a changelog."""
    NOTEBOOK = "notebook"
    PATCH = "patch"
    """A committed patch, or what a merge left behind."""
    BUILD_OUTPUT = "build_output"
    ARCHIVE = "archive"
    """A packed file; nothing in it was read."""
    INSTRUCTION = "instruction"
    ENVIRONMENT = "environment"
    """A package of the environment that is a release of the upstream itself."""


class Leak(Record):
    """One finding of the leakage scan, and what was done about it."""

    kind: LeakKind
    action: Literal["refused", "scrubbed", "noted"]
    path: str
    """In the starting tree; ``instruction.md`` for the instruction."""
    line: int | None = None
    """Of the first hit, from 1."""
    share: float | None = Field(default=None, ge=0, le=1)
    """Of the reference's telling added lines, how many are there. None where lines do not say it."""
    excerpt: str = ""

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        part = "" if self.share is None else f", {self.share:.0%} of the reference"
        return f"{self.action} {self.kind.value} {place}{part}{': ' + self.excerpt if self.excerpt else ''}"


class Variant(StrEnum):
    """What is made of a pull request."""

    FIX = "fix"
    """What it did, from its base."""
    OPTIMIZE = "optimize"
    """Its base made faster; nothing but speed counts."""
    AUTHOR = "author"
    """The bodies of its kernels written anew, from the merged source without them."""
    PORT = "port"
    """Its kernels in another language, from the merged source with the old ones beside it to be read."""

    @property
    def has_own_start(self) -> bool:
        """Whether it starts from a tree that upstream never had."""
        return self in (Variant.AUTHOR, Variant.PORT)


PORT_LANGUAGES = ("triton", "hip")
"""Into which kernels can be ported."""


class Port(Record):
    """What a port is from and to."""

    to: Literal["triton", "hip"]
    origin: tuple[str, ...]
    """Languages of the kernels as they were merged."""
    oracle: tuple[str, ...]
    """Files of the starting tree that hold these kernels whole. They are there to be read, and gone when it is
    graded."""
    solved: bool
    """Whether the reference patch is a port. Where it is not, it gives the old bodies back, which shows that the tests
    tell, and not that the port can be written."""


class SmithMetadata(Record):
    """Everything of ours in ``task.toml``."""

    schema_version: Literal[1] = 1
    id: TaskId
    variant: Variant = Variant.FIX
    port: Port | None = None
    """Given for ``port`` only."""
    kind: Kind
    languages: tuple[str, ...]
    devices: tuple[str, ...]
    """Kinds of device that can validate it: interpreter, cpu, rocm, cuda."""
    source: Source
    kernels: tuple[KernelChange, ...]
    editable: tuple[str, ...]
    """Globs (``**`` crosses folders) of the paths that a submission may touch."""
    excluded: tuple[Excluded, ...] = ()
    interface: tuple[InterfaceItem, ...] = Field(default=(), exclude_if=_empty)
    """What the hidden tests use and the start lacks."""
    leaks: tuple[Leak, ...] = Field(default=(), exclude_if=_empty)
    """What the leakage scan found and let pass or took out."""

    @model_validator(mode="after")
    def _named_by_variant(self) -> SmithMetadata:
        if (self.port is not None) != (self.variant is Variant.PORT):
            raise ValueError("a port says what it is from and to, and nothing else does")
        suffix = suffix_of(self.variant, self.port.to if self.port else None)
        if self.id.partition("~")[2] != suffix:
            raise ValueError(f"the id of this variant ends in {f'~{suffix}' if suffix else 'the number'}")
        return self


def suffix_of(variant: Variant, to: str | None = None) -> str:
    """What the id of a variant has behind its tilde; empty for the plain fix, which has none."""
    return "" if variant is Variant.FIX else f"{variant.value}-{to}" if to else variant.value


def plain_id(task_id: str) -> str:
    """The id of the plain fix of a pull request, whichever variant ``task_id`` is: what variants have in common."""
    return task_id.partition("~")[0]


class Metadata(Record):
    smith: SmithMetadata


class TaskName(Record):
    name: str
    description: str = ""
    keywords: tuple[str, ...] = ()


class AgentLimits(Record):
    timeout_sec: float = 3600.0
    network_mode: Literal["public", "no-network", "allowlist"] = "no-network"


class VerifierLimits(Record):
    timeout_sec: float = 1800.0
    network_mode: Literal["public", "no-network", "allowlist"] = "no-network"
    environment_mode: Literal["shared", "separate"] = "separate"


class EnvironmentLimits(Record):
    network_mode: Literal["public", "no-network", "allowlist"] = "no-network"
    build_timeout_sec: float = 1800.0
    cpus: int = 2
    memory_mb: int = 8192
    storage_mb: int = 10240


class TaskFile(Record):
    """``task.toml``. Unknown keys are errors here even though Harbor lets them pass."""

    schema_version: Literal["1.4"] = "1.4"
    artifacts: tuple[str, ...] = ()
    task: TaskName
    metadata: Metadata
    agent: AgentLimits = AgentLimits()
    verifier: VerifierLimits = VerifierLimits()
    environment: EnvironmentLimits = EnvironmentLimits()


AuthoredPath = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_][\w.-]*/)*test_extra_[a-z0-9_]+\.py$")]
"""Where an extra hidden test lies in the source: ``test_extra_*.py`` in a folder of upstream's own hidden tests."""


class Selection(Document):
    """``tests/selection.json``: which hidden tests are run and how. Says nothing about outcomes."""

    tree: Oid
    """Tree of all hidden test files at their paths, kept like the source."""
    roots: tuple[str, ...] = ()
    """Folders whose whole content on the merged side belongs to that tree."""
    extra: tuple[str, ...] = ()
    """Further files of the merged side that belong to it."""
    removed: tuple[str, ...] = ()
    """Test files of the start that the merge removed: taken away before the overlay is laid."""
    left_out: tuple[str, ...] = ()
    """Files of the merged side that belong to it but whose content the mirror lacks."""
    files: tuple[str, ...]
    """Test files to run, in order; those that the pull request changed."""
    guards: tuple[str, ...] = ()
    """Further test files that reach the changed code; only for pass-to-pass."""
    authored: tuple[AuthoredPath, ...] = Field(default=(), exclude_if=_empty)
    """Extra hidden tests that upstream does not have, kept in the bundle below ``tests/extra/`` at these paths."""
    changed_tests: tuple[str, ...] = ()
    """``file::test`` functions that are new or whose body changed: run first."""
    only: tuple[str, ...] = ()
    """When not empty, exactly these ids are run."""
    workloads: tuple[str, ...] = ()
    """Timing workloads, files below ``tests/workloads/``."""
    id_timeout_s: float = Field(default=60.0, gt=0)
    """Limit of one test id."""
    budget_s: float = Field(default=30.0, gt=0)
    """Time that one pass of the reference over one file may take; later ids are left out. A guard has a quarter."""
    max_ids: int = Field(default=12, gt=0)
    """At most so many ids of one file; of a guard a quarter."""

    @property
    def places(self) -> tuple[str, ...]:
        """Folders and files that belong to the hidden tests, sorted, none below another: whatever is there is replaced
        by them."""
        named = {*self.roots, *self.extra, *self.removed, *self.authored}
        return tuple(sorted(p for p in named if not any(p.startswith(f"{root}/") for root in self.roots)))

    def hides(self, path: str) -> bool:
        """Whether ``path`` belongs to the hidden tests, so that no submission may touch it."""
        return any(path == place or path.startswith(f"{place}/") for place in self.places)


class Probe(Record):
    """A solution that shows what the hidden tests tell apart. Its patch is ``solution/probes/<name>.patch``."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{1,39}$")]
    kind: Literal["wrong", "alternative"]
    """``wrong``: must fail the hidden tests; ``alternative``: another right solution, must pass them."""
    focus: str
    """What it gets wrong, or in what it differs from the reference, in one sentence."""


class Probes(Document):
    """``solution/probes.json``: what validation tries besides base and reference. No agent ever sees it."""

    probes: tuple[Probe, ...]

    @model_validator(mode="after")
    def _distinct(self) -> Probes:
        names = [probe.name for probe in self.probes]
        if len(set(names)) != len(names):
            raise ValueError("two probes have one name")
        return self
