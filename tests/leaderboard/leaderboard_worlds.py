"""Data repositories whose runs are drawn, but whose grades follow from the receipts of the sample panel."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smith.evaluate.run import RUN_FILE, attempt_folder
from smith.freeze.bundle import Store
from smith.freeze.panels import load_panel, pinned_receipt
from smith.paths import write_atomically
from smith.records.agent_run import AgentRun
from smith.records.attempt import Attempt, Ended, RunConfig
from smith.records.base import Reason
from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.panel import PanelTask
from smith.records.receipt import Answer, Timing
from smith.records.results import Outcome, TestResult
from tests.conftest import new_data_repository

HERE = Path(__file__).parents[2]


def commit_all(store: Store, message: str = "data") -> None:
    """Commit the whole work tree, as somebody."""
    root = str(store.layout.root)
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", "-C", root, "add", "-A"], check=True)
    subprocess.run(["git", "-C", root, *who, "commit", "-q", "--allow-empty", "-m", message], check=True)


def sample_data(root: Path) -> Store:
    """A data repository with the sample's bundles, receipts and panel, all of it committed."""
    store = new_data_repository(root)
    for name in ("tasks", "panels"):
        shutil.copytree(HERE / name, root / name)
    (root / ".gitattributes").write_text("leaderboard/** -text -filter -ident\n")
    subprocess.run(["git", "-C", str(root), "config", "user.name", "Somebody"], check=True)
    subprocess.run(["git", "-C", str(root), "config", "user.email", "somebody@example.org"], check=True)
    commit_all(store)
    return store


def draw(
    store: Store,
    name: str,
    solves: Callable[[str, int], bool | None],
    *,
    attempts: int = 1,
    agent: str = "tools",
    model: str | None = "some-model",
    usd: int = 250_000,
    options: dict[str, str] | None = None,
    reason: str = "it fails",
) -> RunConfig:
    """Write a run; ``solves(task, attempt)`` gives None for an attempt of which nothing is left."""
    panel = load_panel(store.layout, "sample")
    config = RunConfig(
        run=name, panel="sample", tasks=panel.tasks, agent=agent, agent_options=options or {}, model=model,
        attempts=attempts, created_at="2026-01-01T00:00:00+00:00", smith="0.1",
    )  # fmt: skip
    config.save(store.layout.run(name) / RUN_FILE)
    for pinned in config.tasks:
        for number in range(1, attempts + 1):
            solved = solves(pinned.id, number)
            if solved is not None:
                _write(store, config, pinned, number, solved, usd, reason)
    return config


def _write(
    store: Store, config: RunConfig, pinned: PanelTask, number: int, solved: bool, usd: int, reason: str
) -> None:
    expected = pinned_receipt(store, pinned, "auto")
    receipt = expected.receipt
    patch = f"{config.run} {pinned.id} {number}\n".encode()
    digest = hashlib.sha256(patch).hexdigest()
    ids = [*receipt.fail_to_pass, *receipt.pass_to_pass]
    failing = set() if solved else set(receipt.fail_to_pass[:1] or ids[:1])
    fast = receipt.timing.geomean * 0.9 if solved and receipt.timing is not None else None
    timing = None if fast is None else Timing(
        method="drawn", device=receipt.device, rounds=5, noise_low=0.99, noise_high=1.01, cases=(), geomean=fast,
        low=fast * 0.95, high=fast * 1.05, worst=fast, answer=Answer.FASTER,
    )  # fmt: skip

    def count(wanted: tuple[str, ...]) -> Count:
        return Count(passed=sum(i not in failing for i in wanted), total=len(wanted))

    folder = attempt_folder(store.layout, config.run, pinned.id, number)
    write_atomically(folder / "submission.patch", patch)
    Attempt(
        run=config.run, task=pinned.id, tree=pinned.tree, attempt=number, ended=Ended.SUBMITTED, patch_sha256=digest,
        patch_bytes=len(patch), micro_usd=usd, input_tokens=9000, output_tokens=1000, seconds=30.0,
    ).save(folder / "attempt.json")  # fmt: skip
    if config.model is not None:
        AgentRun(
            agent=config.agent, model=config.model, dialect="chat", about={"prompt": "0" * 64}, sandbox="bubblewrap",
            device=receipt.device, timeout_s=3600, max_output_tokens=1000, price="drawn", calls=3, sent=3, uncertain=0,
            refused=0, faults=0, input_tokens=9000, output_tokens=1000, cached_tokens=0, micro_usd=usd, seconds=30.0,
        ).save(folder / "agent.json")  # fmt: skip
    Grade(
        task=pinned.id, tree=pinned.tree, device=receipt.device,
        verdict=GradeVerdict.SOLVED if solved else GradeVerdict.FAILED,
        reasons=() if solved else (Reason(code="failed", detail=reason),), fail_to_pass=count(receipt.fail_to_pass),
        pass_to_pass=count(receipt.pass_to_pass), speedup=timing, speedup_reason="measured" if timing else "not_asked",
        patch_sha256=digest, receipt=expected.blob, sandbox="bubblewrap", seconds=2.0,
        tests=tuple(TestResult(id=i, outcome=Outcome.FAILED if i in failing else Outcome.PASSED, seconds=0.1,
                               message="said /tmp/secret/place" if i in failing else "") for i in ids),
    ).save(folder / "grade.json")  # fmt: skip


def smith(store: Store, *args: str, status: int = 0) -> str:
    """Run the command; its standard output, or its standard error where it is expected not to be good."""
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), *args],
        capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr if status == 2 else done.stdout


def parsed(store: Store, *args: str, status: int = 0) -> Any:
    return json.loads(smith(store, *args, "--json", status=status))


def merge(store: Store, branch: str) -> None:
    """Merge a branch as a person would after a review."""
    subprocess.run(["git", "-C", str(store.layout.root), "merge", "-q", "--no-edit", branch], check=True)
