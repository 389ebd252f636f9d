"""Runs on the sample's real bundles whose outcomes are drawn: evidence as a run leaves it, without running anything."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from smith.evaluate.run import RUN_FILE, attempt_folder
from smith.freeze.bundle import Store
from smith.freeze.panels import load_panel
from smith.paths import Layout, write_atomically
from smith.records.attempt import Attempt, Ended, RunConfig
from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.panel import PanelTask
from smith.records.receipt import Answer, Timing
from tests.conftest import new_data_repository

HERE = Path(__file__).parents[2]
Outcome = tuple[GradeVerdict, float | None]
"""A verdict, and the speed-up that was measured."""


def sample_data(root: Path) -> Store:
    """A data repository with the sample's bundles, receipts and panel."""
    store = new_data_repository(root)
    for name in ("tasks", "panels"):
        shutil.copytree(HERE / name, root / name)
    return store


def pins() -> tuple[PanelTask, ...]:
    """What the sample panel pins."""
    return load_panel(Layout(HERE), "sample").tasks


def draw(
    layout: Layout,
    name: str,
    outcome: Callable[[str, int], Outcome | None],
    *,
    tasks: tuple[PanelTask, ...] | None = None,
    attempts: int = 1,
    model: str | None = None,
) -> RunConfig:
    """Write a run; ``outcome(task, number)`` gives None for an attempt of which nothing is left."""
    config = RunConfig(
        run=name, panel="sample", tasks=pins() if tasks is None else tasks, agent="drawn", model=model,
        attempts=attempts, created_at="2026-01-01T00:00:00+00:00", smith="0",
    )  # fmt: skip
    config.save(layout.run(name) / RUN_FILE)
    for pinned in config.tasks:
        for number in range(1, attempts + 1):
            found = outcome(pinned.id, number)
            if found is not None:
                _write(attempt_folder(layout, name, pinned.id, number), config, pinned, number, *found)
    return config


def _write(
    folder: Path, config: RunConfig, pinned: PanelTask, number: int, verdict: GradeVerdict, speedup: float | None
) -> None:
    patch = f"{config.run} {pinned.id} {number}\n".encode()
    digest = hashlib.sha256(patch).hexdigest()
    timing = None if speedup is None else Timing(
        method="drawn", device="cpu", rounds=5, noise_low=0.99, noise_high=1.01, cases=(), geomean=speedup,
        low=speedup * 0.95, high=speedup * 1.05, worst=speedup, answer=Answer.FASTER,
    )  # fmt: skip
    solved = verdict is GradeVerdict.SOLVED
    write_atomically(folder / "submission.patch", patch)
    Grade(
        task=pinned.id, tree=pinned.tree, device=next(iter(pinned.receipts)), verdict=verdict,
        fail_to_pass=Count(passed=int(solved), total=1), pass_to_pass=Count(passed=1, total=1), speedup=timing,
        speedup_reason="measured" if timing else "not_asked", patch_sha256=digest, sandbox="drawn", seconds=2.0,
    ).save(folder / "grade.json")  # fmt: skip
    Attempt(
        run=config.run, task=pinned.id, tree=pinned.tree, attempt=number, ended=Ended.SUBMITTED, patch_sha256=digest,
        patch_bytes=len(patch), micro_usd=250_000, input_tokens=9000, output_tokens=1000, seconds=30.0,
    ).save(folder / "attempt.json")  # fmt: skip
