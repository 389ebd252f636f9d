"""The compile gate through the command line, on a task of the sample upstream."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smith.freeze.bundle import Store
from smith.records.receipt import Receipt
from tests.conftest import new_data_repository

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
TASK = "smith-lab__minikernels-53"


def smith(store: Store, *args: str, status: int = 0) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), *args], capture_output=True, text=True
    )
    assert done.returncode == status, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout) if "--json" in args else done.stdout + done.stderr


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> Store:
    store = new_data_repository(tmp_path_factory.mktemp("gate") / "data")
    smith(store, "freeze", "smith:sample", "--pr", "53")
    return store


def test_a_task_is_compiled_for_gpus_that_are_not_here(world: Store) -> None:
    (said,) = smith(world, "validate", TASK, "--repeats", "1", "--targets", "gfx942,gfx950", "--json")["tasks"]
    assert said["verdict"] == "valid"
    for target in ("gfx942", "gfx950"):
        found = said["targets"][target]
        assert (found["verdict"], found["compiled"]) == ("compiled", found["launches"])
        assert found["launches"] > 0 and found["base_launches"] > 0
        for kernel in found["kernels"]:
            assert {"symbol", "vgpr", "sgpr", "vgpr_spills", "lds_bytes", "occupancy"} <= kernel.keys()
            assert kernel["baseline"]["vgpr"] > 0
        assert set(said["launches"]) <= {kernel["symbol"] for kernel in found["kernels"]}
    assert any("other than gfx942 and gfx950" in words for words in said["not_proved"])
    (path,) = world.layout.tasks.glob("receipts/*/*/*.json")
    receipt = Receipt.load(path)
    assert receipt.targets["gfx942"].compiler and not receipt.targets["gfx942"].reason
    assert str(Path.home()) not in path.read_text() and str(world.layout.root) not in path.read_text()
    before = path.read_bytes()

    # Once more: everything is remembered, the same is found, and the receipt stays as it is.
    (again,) = smith(world, "validate", TASK, "--repeats", "1", "--targets", "gfx942,gfx950", "--json")["tasks"]
    assert again["targets"] == said["targets"]
    assert path.read_bytes() == before

    shown = smith(world, "task", "show", TASK, "--isa")
    assert "interpreter:gfx942 -> gfx950" in shown and "occu-" in shown and "compiled" in shown
    assert "gfx942: compiled" in smith(world, "task", "show", TASK)


def test_a_submission_is_compiled_beside_its_grade(world: Store, tmp_path: Path) -> None:
    bundle = world.load(TASK)
    (path,) = world.layout.tasks.glob("receipts/*/*/*.json")
    known = Receipt.load(path).targets["gfx942"]
    (tmp_path / "same.patch").write_bytes(bundle.reference)
    kept = remembered(world)
    said = smith(world, "grade", TASK, str(tmp_path / "same.patch"), "--targets", "gfx942", "--json")
    found = said["targets"]["gfx942"]
    assert said["verdict"] == "solved" and found["verdict"] == "compiled" and found["launches"] == known.launches
    mine = {kernel["symbol"]: (kernel["vgpr"], kernel["code_bytes"]) for kernel in found["kernels"]}
    assert mine == {kernel.symbol: (kernel.vgpr, kernel.code_bytes) for kernel in known.kernels}

    # What the interpreter takes for Python and a compiler refuses: solved there, and seen not to compile.
    added = next(line for line in bundle.reference.splitlines() if line.startswith(b"+    ") and b"tl." in line)
    indent = b" " * (len(added[1:]) - len(added[1:].lstrip()))
    odd = with_line(bundle.reference, added, indent + b"_ = {n: n for n in (1, 2)}")
    (tmp_path / "odd.patch").write_bytes(odd)
    said = smith(world, "grade", TASK, str(tmp_path / "odd.patch"), "--targets", "gfx942", "--json")
    found = said["targets"]["gfx942"]
    assert said["verdict"] == "solved" and found["verdict"] == "failed"
    assert {(f["side"], f["code"]) for f in found["failures"]} == {("submission", "language")}
    assert remembered(world) == kept  # a submission's answers are kept for nobody

    assert "targets" not in smith(world, "grade", TASK, str(tmp_path / "same.patch"), "--json")


def with_line(patch: bytes, after: bytes, line: bytes) -> bytes:
    """A patch with one added line more behind the added line ``after``."""
    made, header = [], -1
    for one in patch.splitlines():
        if one.startswith(b"@@"):
            header = len(made)
        made.append(one)
        if one == after:
            made.append(b"+" + line)
            start, _, count = made[header].split(b" ")[2].partition(b",")
            made[header] = made[header].replace(start + b"," + count, b"%s,%d" % (start, int(count) + 1), 1)
    return b"\n".join(made) + b"\n"


def remembered(store: Store) -> int:
    """How many answers of compilers are kept."""
    with sqlite3.connect(store.layout.compiled) as db:
        (count,) = db.execute("SELECT count(*) FROM compiled").fetchone()
    return int(count)


def test_a_target_that_nobody_knows_is_refused_at_once(world: Store) -> None:
    said = smith(world, "validate", TASK, "--targets", "gfx942,gfx9000", status=2)
    assert "gfx9000" in said and "gfx950" in said


def test_what_no_receipt_knows_is_said_with_the_way_to_know(tmp_path: Path) -> None:
    store = new_data_repository(tmp_path / "data")
    smith(store, "freeze", "smith:sample", "--pr", "53")
    assert f"smith validate {TASK} --targets" in smith(store, "task", "show", TASK, "--isa")
