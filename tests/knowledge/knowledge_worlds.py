"""Cards that are made up, and runs whose attempts hand in patches: evidence as a run leaves it, with nothing run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from smith.cli.main import cli
from smith.errors import SmithError
from smith.evaluate.advice import arm_of
from smith.evaluate.run import RUN_FILE, attempt_folder
from smith.freeze.bundle import REFERENCE, Store
from smith.freeze.panels import load_panel, load_receipt
from smith.knowledge.cards import SECTIONS, body_of, with_identifier
from smith.paths import Layout, write_atomically
from smith.records.attempt import Attempt, Ended, RunConfig
from smith.records.base import Reason
from smith.records.card import Aim, AppliesTo, Card
from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.receipt import Answer, TimedCase, Timing
from smith.records.shown import Arm, RunKnowledge, ShownCard, Told
from tests.conftest import new_data_repository

HERE = Path(__file__).parents[2]
BODY = body_of({name: f"What there is to say of {name.lower()} in one sentence." for name in SECTIONS})
TRANSPOSE, MATVEC = "smith-lab__minikernels-46", "smith-lab__minikernels-24"
GATHER, WIDE = "smith-lab__minikernels-53", "smith-lab__minikernels-58"
Outcome = tuple[GradeVerdict, float | None]


def card(lever: str = "loop-tiling", operator: str = "layout", **more: Any) -> Card:
    """A card with its own identifier."""
    where = {"operator": operator, "languages": ("native",), "devices": ("cpu",), **more.pop("applies_to", {})}
    made = Card(
        id="0" * 12, title=f"{lever} for {operator}", aim=Aim.SPEED, lever=lever,
        applies_to=AppliesTo.model_validate(where), **more,
    )  # fmt: skip
    return with_identifier(made)


def sample_data(root: Path) -> Store:
    """A committed data repository with the sample's bundles, receipts and panel."""
    store = new_data_repository(root)
    for name in ("tasks", "panels"):
        shutil.copytree(HERE / name, root / name)
    git(store, "config", "user.name", "A Maintainer")
    git(store, "config", "user.email", "maintainer@example.org")
    commit(store, "Tasks")
    return store


def git(store: Store, *args: str) -> str:
    """Run git as a user would; its output."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    return subprocess.run(
        ["git", *args], cwd=store.layout.root, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(store: Store, message: str = "A change") -> None:
    git(store, "add", "-A")
    git(store, "commit", "-q", "-m", message)


def smith(store: Store, *args: str) -> tuple[int, Any]:
    """The command with ``--json``, in this process: its exit status, and its document or its error."""
    done = CliRunner().invoke(cli, ["-C", str(store.layout.root), *args, "--json"])
    if isinstance(done.exception, SmithError):
        return done.exception.exit_code, str(done.exception)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, json.loads(done.stdout)


def hand_in(
    layout: Layout,
    name: str,
    outcome: Callable[[str, int], Outcome | None],
    tasks: tuple[str, ...],
    *,
    attempts: int = 1,
    patch: Callable[[str], bytes] | None = None,
) -> RunConfig:
    """Write a run that hands in the reference patches, or what ``patch(task)`` gives, with grades as drawn."""
    pins = tuple(pin for pin in load_panel(layout, "sample").tasks if pin.id in tasks)
    config = RunConfig(
        run=name, panel="sample", tasks=pins, agent="drawn", attempts=attempts,
        created_at="2026-01-01T00:00:00+00:00", smith="0",
    )  # fmt: skip
    config.save(layout.run(name) / RUN_FILE)
    for pin in pins:
        device, blob = next(iter(pin.receipts.items()))
        receipt = load_receipt(layout.receipt(pin.id, pin.tree, device), pin.id, pin.tree).receipt
        data = patch(pin.id) if patch is not None else (layout.task(pin.id) / REFERENCE).read_bytes()
        for number in range(1, attempts + 1):
            drawn = outcome(pin.id, number)
            if drawn is None:
                continue
            verdict, speedup = drawn
            solved = verdict is GradeVerdict.SOLVED or speedup is not None
            folder = attempt_folder(layout, name, pin.id, number)
            digest = hashlib.sha256(data).hexdigest()
            counts = [Count(passed=len(ids) if solved else 0, total=len(ids))
                      for ids in (receipt.fail_to_pass, receipt.pass_to_pass)]  # fmt: skip
            write_atomically(folder / "submission.patch", data)
            Grade(
                task=pin.id, tree=pin.tree, device=device, verdict=verdict, fail_to_pass=counts[0],
                pass_to_pass=counts[1], speedup=timing(speedup, number) if speedup is not None else None,
                reasons=() if verdict is GradeVerdict.SOLVED else (Reason(code="not_faster" if solved else "failed"),),
                speedup_reason="measured" if speedup is not None else "not_asked", patch_sha256=digest, receipt=blob,
                environment=receipt.environment, sandbox="drawn", seconds=2.0,
            ).save(folder / "grade.json")  # fmt: skip
            Attempt(
                run=name, task=pin.id, tree=pin.tree, attempt=number, ended=Ended.SUBMITTED, patch_sha256=digest,
                patch_bytes=len(data), seconds=30.0,
            ).save(folder / "attempt.json")  # fmt: skip
    return config


def show(layout: Layout, config: RunConfig, card: str, seed: int = 3) -> RunConfig:
    """Make a run that was handed in one whose attempts were shown ``card``, or not, as ``seed`` draws."""
    changed = config.model_copy(update={"knowledge": RunKnowledge(mode="ab", seed=seed, cards_sha256="0" * 64)})
    changed.save(layout.run(config.run) / RUN_FILE)
    one = (ShownCard(card=card, file_sha256="1" * 64, text_sha256="2" * 64),)
    for pin in config.tasks:
        for number in range(1, config.attempts + 1):
            path = attempt_folder(layout, config.run, pin.id, number) / "attempt.json"
            if not path.is_file():
                continue
            arm = arm_of("ab", seed, pin.id, number)
            told = Told(arm=arm, shown=one, cited=(card,)) if arm is Arm.SHOWN else Told(arm=arm, withheld=one)
            Attempt.load(path).model_copy(update={"knowledge": told}).save(path)
    return changed


def timing(ratio: float, number: int = 1) -> Timing:
    """A measured speed-up of two cases; that of another attempt differs a little."""
    ratio = ratio * (1 + number / 1000)
    cases = tuple(
        TimedCase(case=case, ratio=ratio * part, low=ratio * part * 0.95, high=ratio * part * 1.05,
                  baseline_ns=(9e6, 9e6), candidate_ns=(9e6 / ratio,))
        for case, part in (("small", 0.8), ("large", 1.25))
    )  # fmt: skip
    return Timing(
        method="drawn", device="cpu", rounds=5, noise_low=0.99, noise_high=1.01, cases=cases, geomean=ratio,
        low=ratio * 0.95, high=ratio * 1.05, worst=ratio * 0.8,
        answer=Answer.FASTER if ratio * 0.95 > 1 else Answer.SLOWER if ratio * 1.05 < 1 else Answer.SAME,
    )  # fmt: skip
