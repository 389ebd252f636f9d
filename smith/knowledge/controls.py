"""The paired controls of a run: attempts without the help, of another run or of the very pair."""

from __future__ import annotations

import hashlib
from pathlib import Path

from smith.evaluate.advice import arm_of
from smith.evaluate.attempt import GRADE
from smith.evaluate.run import attempt_folder, states
from smith.freeze.bundle import Store
from smith.knowledge.effects import COUNTED
from smith.records.attempt import RunConfig
from smith.records.base import read
from smith.records.sealed import Control
from smith.records.shown import Arm


def controls_of(store: Store, control: RunConfig) -> dict[tuple[str, str, int], Control]:
    """The graded attempts of the control run by task, device and number."""
    found = {}
    for state in states(store.layout, control):
        if state.grade is not None and state.grade.verdict in COUNTED:
            folder = attempt_folder(store.layout, control.run, state.task, state.number)
            found[state.task, state.grade.device, state.number] = Control(
                verdict=state.grade.verdict,
                grade_sha256=digest_of(folder / GRADE),
                patch_sha256=state.grade.patch_sha256,
            )
    return found


def controls_in_pairs(store: Store, config: RunConfig) -> dict[tuple[str, str, int], Control]:
    """In a run whose arms were drawn: for the attempt of a pair that was shown cards, the one that was not."""
    if config.knowledge is None or config.knowledge.mode != "ab":
        return {}
    graded = controls_of(store, config)
    found = {}
    for (task, device, number), control in graded.items():
        arm = arm_of("ab", config.knowledge.seed, task, number)
        if arm is Arm.COLD:
            found[task, device, number + 1 if number % 2 else number - 1] = control
    return found


def digest_of(path: Path) -> str:
    """SHA-256 of a file of evidence. Raises :class:`smith.errors.RecordError`."""
    return hashlib.sha256(read(path)).hexdigest()
