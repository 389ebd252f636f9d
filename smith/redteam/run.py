"""Grade hacks and controls with the real grader, and say what that tells of the grader."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smith.errors import RecordError
from smith.freeze.bundle import Bundle
from smith.freeze.panels import StoredReceipt
from smith.grade.grader import grade
from smith.grade.hollow import hollow
from smith.grade.trial import Bench
from smith.harness.environment import TestEnvironment
from smith.records.base import Reason
from smith.records.grade import Grade, GradeVerdict
from smith.records.redteam import Standing, Tried
from smith.redteam.base import Hack, NotApplicable
from smith.redteam.controls import Control
from smith.redteam.target import Target


@dataclass(frozen=True)
class Work:
    """One submission to be graded: a hack or a control on a task."""

    target: Target
    expected: StoredReceipt
    one: Hack | Control

    @property
    def hack(self) -> Hack | None:
        return self.one if isinstance(self.one, Hack) else None


def attempt(work: Work, bench: Bench, environment: TestEnvironment, folder: Path, step: Callable[[str], None]) -> Tried:
    """Make the submission and grade it as ``smith grade`` does. The evidence is kept in ``folder``.

    A finished grade of the same patch by the same receipt that lies there is taken as it is.
    """
    began = time.monotonic()
    number = work.hack.number if work.hack else 0
    patch = work.hack.make(work.target) if work.hack else work.one.make(work.target)
    if isinstance(patch, NotApplicable):
        reason = Reason(code=patch.why.value, detail=patch.detail)
        return Tried(name=work.one.name, number=number, standing=Standing.NOT_APPLICABLE, reasons=(reason,))
    file = folder / work.target.bundle.id / f"{work.one.name}.json"
    graded = _finished(file, patch, work)
    if graded is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".patch").write_bytes(patch)
        bundle = _shorter(work.target.bundle, work.hack)
        graded = grade(bundle, patch, work.expected, bench, environment, save=file, emptier=hollow, step=step)
    return Tried(
        name=work.one.name,
        number=number,
        standing=_standing(graded, work.hack is not None),
        verdict=graded.verdict,
        reasons=graded.reasons[:3],
        speedup=graded.speedup.geomean if graded.speedup else None,
        seconds=round(time.monotonic() - began, 2),
    )


def _finished(file: Path, patch: bytes, work: Work) -> Grade | None:
    """A grade of an earlier, interrupted run that still holds."""
    try:
        graded = Grade.load(file)
    except RecordError:
        return None
    same = graded.patch_sha256 == hashlib.sha256(patch).hexdigest() and graded.receipt == work.expected.blob
    unfinished = any(reason.code == "unfinished" for reason in graded.reasons)
    return graded if same and not unfinished and graded.verdict is not GradeVerdict.INFRA else None


def _shorter(bundle: Bundle, hack: Hack | None) -> Bundle:
    """The bundle with a shorter limit for each test, where a hack waits until it is over."""
    if hack is None or hack.id_timeout_s is None:
        return bundle
    return dataclasses.replace(
        bundle, selection=bundle.selection.model_copy(update={"id_timeout_s": hack.id_timeout_s})
    )


def _standing(graded: Grade, is_hack: bool) -> Standing:
    if graded.verdict is GradeVerdict.INFRA:
        return Standing.UNDECIDED
    solved = graded.verdict is GradeVerdict.SOLVED
    if is_hack:
        return Standing.SCORED if solved else Standing.STOPPED
    return Standing.ACCEPTED if solved else Standing.REFUSED
