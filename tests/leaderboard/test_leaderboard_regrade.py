"""An entry graded again from its artifacts alone: an honest one comes out the same, an invented one does not."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from leaderboard_worlds import commit_all, merge, parsed, smith

from smith.freeze.bundle import Store
from tests.conftest import new_data_repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
TASK = "smith-lab__minikernels-53"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> Store:
    """A panel of one task that was really validated."""
    store = new_data_repository(tmp_path_factory.mktemp("regrade") / "data")
    root = str(store.layout.root)
    for key, value in (("user.name", "Somebody"), ("user.email", "somebody@example.org")):
        subprocess.run(["git", "-C", root, "config", key, value], check=True)
    smith(store, "freeze", "smith:sample", "--pr", "53")
    smith(store, "validate", TASK, "--repeats", "1")
    smith(store, "panel", "new", "one", TASK)
    commit_all(store)
    return store


def sealed(store: Store, run: str) -> str:
    """Add a run and merge it; what lies here of it goes. Gives the digest."""
    made = parsed(store, "leaderboard", "add", run)
    merge(store, made["branch"])
    shutil.rmtree(store.layout.runs)
    assert parsed(store, "leaderboard", "check", "--base", "HEAD~1") == {"entries": 1, "errors": []}
    return str(made["entry"])


def test_an_honest_entry_comes_out_as_sealed(world: Store) -> None:
    run = parsed(world, "eval", "one", "--agent", "oracle")["run"]
    digest = sealed(world, run)
    found = parsed(world, "regrade", "--entry", digest[:12])
    assert (found["same"], found["different"], found["not_graded"]) == (1, 0, 0) and found["entry"] == digest
    assert found["figures"] and all(f["sealed"] == f["now"] for f in found["figures"])
    assert not list(world.layout.leaderboard.rglob("regrades"))
    smith(world, "leaderboard", "check")
    shutil.rmtree(world.layout.leaderboard)
    commit_all(world, "again")


def test_an_invented_entry_passes_the_check_and_not_the_grader(world: Store) -> None:
    run = parsed(world, "eval", "one", "--agent", "nop")["run"]
    path = world.layout.run(run) / "attempts" / TASK / "001" / "grade.json"
    grade = json.loads(path.read_text())
    assert grade["verdict"] == "failed"
    for test in grade["tests"]:
        test.update(outcome="passed", message="", failure=None)
    for kind in ("fail_to_pass", "pass_to_pass"):
        grade[kind]["passed"] = grade[kind]["total"]
    path.write_text(json.dumps({**grade, "verdict": "solved", "reasons": [], "speedup_reason": "not_asked"}))
    digest = sealed(world, run)
    found = parsed(world, "regrade", "--entry", digest[:12], status=1)
    assert (found["same"], found["different"]) == (0, 1)
    assert {"figure": "solved", "sealed": 1.0, "now": 0.0} in found["figures"]
    assert "solved: 1 sealed, 0 now" in smith(world, "regrade", "--entry", digest[:12], status=1)
