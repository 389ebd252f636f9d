"""A grade: the typed verdict on one submission."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from smith.records.base import Document, Oid, Reason, Record, TaskId
from smith.records.compiled import TargetReport
from smith.records.receipt import Timing, UsedEnvironment
from smith.records.results import TestResult
from smith.records.workload import OracleReport


class GradeVerdict(StrEnum):
    SOLVED = "solved"
    FAILED = "failed"
    TAMPERED = "tampered"
    INVALID_PATCH = "invalid_patch"
    TIMEOUT = "timeout"
    INFRA = "infra"
    """Nothing can be said about the submission; to be graded again."""


class Count(Record):
    passed: int
    total: int


class Grade(Document):
    """The verdict on one submission. Written as ``failed`` before anything runs."""

    task: TaskId
    tree: Oid
    device: str
    verdict: GradeVerdict
    reasons: tuple[Reason, ...] = ()
    fail_to_pass: Count
    pass_to_pass: Count
    speedup: Timing | None = None
    speedup_reason: str
    """Why there is or is not a speed-up: measured, not_asked, correctness_failed, cannot_measure_here, ..."""
    patch_sha256: str
    receipt: Oid | None = None
    """Blob of the receipt that gave the expectations."""
    environment: UsedEnvironment | None = None
    """What the tests really ran in."""
    notes: tuple[str, ...] = ()
    """What a reader of the verdict should know besides, such as an environment unlike the receipt's."""
    oracle: OracleReport | None = Field(default=None, exclude_if=lambda report: report is None)
    """What the comparison with the reference on fresh inputs said, where the receipt names a workload."""
    targets: dict[str, TargetReport] = Field(default={}, exclude_if=lambda targets: not targets)
    """By target, what compiling the submission's own launches and files gave, where it was asked for: every figure is
    the submission's. No verdict hangs on it, since the submission's own code is what says how it was launched."""
    tests: tuple[TestResult, ...] = ()
    sandbox: str = ""
    seconds: float = 0.0
