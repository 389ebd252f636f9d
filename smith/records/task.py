"""A task bundle: ``task.toml`` (Harbor's schema 1.4, ours below ``[metadata.smith]``) and the hidden selection."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from smith.records.base import Document, Oid, Record, TaskId
from smith.records.candidate import KernelChange, Kind


class Source(Record):
    """Where a task comes from, by commit and tree."""

    repo: str
    url: str
    pr: int
    base: Oid
    base_tree: Oid
    """Tree of the base commit upstream."""
    tree: Oid
    """Tree that the task starts from; equal to ``base_tree`` unless files had to be left out."""
    left_out: tuple[str, ...] = ()
    """Files of the base tree whose content the mirror lacks."""
    merged: Oid
    merged_at: str
    license: str | None = None


class Excluded(Record):
    """A changed file that is neither part of the reference patch nor a hidden test, e.g. documentation."""

    path: str
    role: str


class SmithMetadata(Record):
    """Everything of ours in ``task.toml``."""

    schema_version: Literal[1] = 1
    id: TaskId
    variant: Literal["fix", "optimize"] = "fix"
    kind: Kind
    languages: tuple[str, ...]
    devices: tuple[str, ...]
    """Kinds of device that can validate it: interpreter, cpu, rocm, cuda."""
    source: Source
    kernels: tuple[KernelChange, ...]
    editable: tuple[str, ...]
    """Globs (``**`` crosses folders) of the paths that a submission may touch."""
    excluded: tuple[Excluded, ...] = ()


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
