"""Sensitivity as a user sees it: planted faults in a task of the sample, in the real sandbox, and an interruption."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from smith.freeze.bundle import Store
from smith.records.receipt import Receipt
from smith.records.sensitivity import Fate
from tests.conftest import new_data_repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

TASK = "smith-lab__minikernels-60"  # native: no torch to load


def command(store: Store, *args: str) -> list[str]:
    return [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), *args]


def smith(store: Store, *args: str, check: int = 0) -> Any:
    done = subprocess.run(command(store, *args), capture_output=True, text=True, check=False)
    assert done.returncode == check, f"{args}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if "--json" in args else done.stdout + done.stderr


@pytest.fixture
def world(tmp_path: Path, sandbox_name: str) -> Store:
    store = new_data_repository(tmp_path / "data")
    smith(store, "freeze", "smith:sample", "--pr", "60")
    return store


def kept(store: Store) -> Receipt | None:
    path = store.layout.receipt(TASK, store.load(TASK).tree, "cpu")
    return Receipt.load(path) if path.is_file() else None


def test_planted_faults_are_caught_or_shown(world: Store) -> None:
    run = ["validate", TASK, "--repeats", "1", "--sensitivity", "--mutants", "9", "--sensitivity-budget", "900"]
    said = smith(world, *run, "--workloads", "--json")["tasks"][0]
    assert said["verdict"] == "valid"
    receipt = kept(world)
    assert receipt is not None and receipt.planted is not None
    assert said["sensitivity"] == receipt.sensitivity == receipt.planted.share
    fates = {f.name: f for f in receipt.planted.faults}
    # The only hunk is all of the change; a sum of the odd column's square with a minus cannot go unseen, while nothing
    # tests an epsilon.
    assert [f.fate for f in fates.values() if f.kind == "hunk"] == [Fate.SAME]
    caught = [f for f in fates.values() if f.fate is Fate.CAUGHT]
    assert len(caught) >= 6
    assert all(f.caught_by in (*receipt.fail_to_pass, *receipt.pass_to_pass) for f in caught)
    (survivor,) = receipt.planted.survivors
    assert (survivor.operator, survivor.line) == ("plus_and_minus", 19)
    # At a width of one the recorded calls tell an epsilon from its opposite, which the tests' tolerance does not.
    shapes = receipt.planted.shapes
    assert shapes is not None and shapes.survivors == 1 and all(one.used == one.calls for one in shapes.variants)
    assert survivor.in_calls is not None and not survivor.in_calls.only_shapes
    shown = smith(world, "task", "show", TASK, "--survivors")
    assert "caught by recorded calls, as variant recorded" in shown
    assert "- eps)" in shown and "+ eps)" in shown
    assert "survived" in smith(world, "task", "show", TASK, "--faults")

    # Validating again without it keeps what is known.
    smith(world, "validate", TASK, "--repeats", "1")
    assert kept(world) == receipt
    # A panel's floor.
    refused = smith(world, "panel", "new", "good", TASK, "--min-sensitivity", "0.99", check=2)
    assert "the panel asks for 0.99" in refused and refused.count("\n") == 1
    smith(world, "panel", "new", "good", "--valid", "--min-sensitivity", "0.5")
    smith(world, "panel", "check", "good")
    path = world.layout.panel("good")
    path.write_text(path.read_text().replace("min_sensitivity = 0.5", "min_sensitivity = 0.99"))
    findings = smith(world, "panel", "check", "good", "--json", check=1)["findings"]
    assert [f["code"] for f in findings] == ["policy"]


def test_an_interruption_loses_nothing_of_the_validation(world: Store) -> None:
    argv = command(world, "validate", TASK, "--repeats", "1", "--sensitivity")
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 600
    while kept(world) is None and time.monotonic() < deadline and child.poll() is None:
        time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=120)
    assert child.returncode == 130
    receipt = kept(world)
    assert receipt is not None and receipt.planted is None
    assert smith(world, "panel", "new", "small", "--valid").startswith("panels/small.toml: 1 tasks")
    assert not list(world.layout.work.glob("place-*"))


def test_options_without_the_one_that_they_belong_to(world: Store) -> None:
    assert "add --sensitivity" in smith(world, "validate", TASK, "--mutants", "3", check=2)
    assert "--sensitivity" in smith(world, "task", "show", TASK, "--survivors")
