"""From the evidence of a run to what scores are made of: trials, and what is known of their tasks."""

from __future__ import annotations

from collections.abc import Sequence

from smith.errors import SmithError
from smith.evaluate.run import AttemptState
from smith.freeze.bundle import REFERENCE, TASK_FILE
from smith.freeze.panels import receipts_of
from smith.paths import Layout
from smith.records.attempt import RunConfig
from smith.records.panel import PanelTask
from smith.records.task import SmithMetadata, TaskFile
from smith.score.trials import Task, Trial

SIZES = ((20, "to 20 lines"), (100, "to 100 lines"))
"""Strata by the lines that the reference adds and removes; beyond the last is ``more``."""
MORE = "more than 100 lines"
UNKNOWN = "unknown"


def tasks_of(
    layout: Layout, config: RunConfig, found: Sequence[AttemptState], *, cutoff: str | None = None
) -> list[Task]:
    """Every task of a run with its planned attempts, in panel order.

    ``cutoff`` (``2025-06`` or a day of it) divides tasks into those that were merged before a model's knowledge ends
    and those after. What a bundle that is gone by now belonged to is ``unknown``.
    """
    by_task: dict[str, list[Trial]] = {}
    for state in found:
        by_task.setdefault(state.task, []).append(trial_of(state))
    device = {s.task: s.grade.device for s in found if s.grade is not None}
    return [_task(layout, pinned, by_task[pinned.id], device.get(pinned.id), cutoff) for pinned in config.tasks]


def trial_of(state: AttemptState) -> Trial:
    """One planned attempt as scores count it."""
    attempt, graded = state.attempt, state.grade
    return Trial(
        verdict=graded.verdict if graded else None,
        speedup=graded.speedup.geomean if graded and graded.speedup else None,
        usd_micros=attempt.micro_usd if attempt else 0,
        tokens=attempt.input_tokens + attempt.output_tokens if attempt else 0,
        seconds=(attempt.seconds if attempt else 0.0) + (graded.seconds if graded else 0.0),
    )


def _task(layout: Layout, pinned: PanelTask, trials: Sequence[Trial], device: str | None, cutoff: str | None) -> Task:
    used = device or (next(iter(pinned.receipts)) if len(pinned.receipts) == 1 else UNKNOWN)
    strata = {"device": used}
    folder = layout.task(pinned.id)
    try:
        spec: SmithMetadata | None = TaskFile.load(folder / TASK_FILE).metadata.smith
    except SmithError:
        spec = None  # the bundle has gone or changed; its results have not
    strata["kind"] = spec.kind.value if spec else UNKNOWN
    strata["language"] = ",".join(spec.languages) if spec else UNKNOWN
    if spec is not None and (folder / REFERENCE).is_file():
        strata["size"] = _size((folder / REFERENCE).read_bytes())
    if cutoff is not None:
        known = spec.source.merged_at[: len(cutoff)] if spec else ""
        strata["merged"] = (f"before {cutoff}" if known < cutoff else f"from {cutoff}") if known else UNKNOWN
    return Task(id=pinned.id, trials=trials, expert=_expert(layout, pinned, used), strata=strata)


def _size(patch: bytes) -> str:
    lines = sum(line[:1] in (b"+", b"-") and not line.startswith((b"+++ ", b"--- ")) for line in patch.splitlines())
    return next((name for most, name in SIZES if lines <= most), MORE)


def _expert(layout: Layout, pinned: PanelTask, device: str) -> float | None:
    """The speed-up of the reference in the receipt that the panel pins, where one was measured."""
    try:
        receipts = receipts_of(layout, pinned.id, pinned.tree)
    except SmithError:
        return None
    for stored in receipts:
        if stored.blob == pinned.receipts.get(device) and stored.receipt.timing is not None:
            return stored.receipt.timing.geomean
    return None
