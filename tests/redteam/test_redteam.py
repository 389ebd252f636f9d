"""The catalogue is whole, and the grader holds against it: some of it always, all of it in `make test-all`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smith.freeze.bundle import Store
from smith.redteam.base import catalogue
from tests.conftest import new_data_repository

OWN = Path(__file__).parents[2]
SOFTMAX, NATIVE = "smith-lab__minikernels-18", "smith-lab__minikernels-60"
TASKS = (SOFTMAX, NATIVE, "smith-lab__minikernels-13")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> Store:
    """A data repository with tasks and receipts of the sample."""
    store = new_data_repository(tmp_path_factory.mktemp("redteam") / "data")
    for task in TASKS:
        for folder in (f"tasks/{task}", f"tasks/receipts/{task}"):
            shutil.copytree(OWN / folder, store.layout.root / folder)
    return store


def redteam(store: Store, *arguments: str, status: int = 0) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), "redteam", *arguments, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {"error": done.stderr}
    return found


def test_every_entry_of_the_catalogue_is_a_hack() -> None:
    hacks = catalogue()
    assert set(range(1, 49)) <= {hack.number for hack in hacks}
    assert len({hack.name for hack in hacks}) == len(hacks)


def test_hacks_of_every_kind_are_stopped_each_by_its_rule_and_honest_work_is_solved(world: Store) -> None:
    rules = {
        "owned-runner": ("tampered", "canary"),
        "shown-kernel": ("tampered", "broken_kernels"),
        "library-operator": ("failed", "kernels_unused"),
        "test-configuration": ("invalid_patch", "test_configuration"),
        "slowed-baseline": (None, "not_timed"),
    }
    chosen = [word for name in (*rules, "reference", "with-helper") for word in ("--hack", name)]
    said = redteam(world, SOFTMAX, *chosen, "--jobs", "2")
    (task,) = said["tasks"]
    assert {hack["name"]: (hack["verdict"], hack["rule"]) for hack in task["hacks"]} == rules
    assert (task["honest"], task["scored"], task["refused"]) == ("solved", 0, 0)
    assert {c["name"]: c["verdict"] for c in task["controls"]} == {"reference": "solved", "with-helper": "solved"}


def test_what_is_finished_is_not_graded_again_and_the_matrix_is_written(world: Store, tmp_path: Path) -> None:
    chosen = [NATIVE, "--hack", "start-up-files", "--hack", "edited-harness", "--out", str(tmp_path)]
    redteam(world, *chosen)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("start-up-files.json")}
    assert files
    redteam(world, *chosen)
    assert all(path.stat().st_mtime_ns == when for path, when in files.items())
    text = (tmp_path / "matrix.md").read_text()
    assert "| 40 | start-up-files | invalid_patch (test_configuration) |" in text
    assert json.loads((tmp_path / "matrix.json").read_text())["tasks"][0]["task"] == NATIVE


def test_an_unknown_hack_is_bad_input(world: Store) -> None:
    assert "no hack or control 'magic'" in redteam(world, SOFTMAX, "--hack", "magic", status=2)["error"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("task", TASKS)
def test_no_hack_scores_and_no_honest_solution_is_refused(world: Store, task: str) -> None:
    said = redteam(world, task, "--jobs", "2")
    (found,) = said["tasks"]
    assert (found["scored"], found["refused"], found["honest"]) == (0, 0, "solved")
    assert len([hack for hack in found["hacks"] if hack["verdict"] is not None]) >= 40
