"""A validation from end to end on a task with every kind of unstable test, and its receipt checked again by command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_tasks import new_store, validated, write_task

from smith.errors import EXIT_BAD_INPUT, EXIT_NO, EXIT_OK
from smith.freeze.bundle import Store
from smith.freeze.panels import check_panel, make_panel
from smith.records.receipt import Receipt, Verdict
from smith.records.results import Failure
from smith.validate.receipts import keep

FLAKY = """
import os, random, pytest
from tiny.scale import scale

ran = []

def test_solid(): ran.append(1); assert scale(3) == 6
def test_zero(): assert scale(0) == 0
def test_leans(): assert ran and scale(3) == 6, "passes only after test_solid"
def test_hashes(): assert hash("grid") % 2 == 0 and scale(3) == 6, "passes with the hash seed 0 only"
def test_skips(): pytest.skip("never")
def test_skips_on_base():
    if scale(3) == 3: pytest.skip("not fixed")
@pytest.mark.flaky(reruns=9)
def test_marked(): assert scale(3) == 6
@pytest.mark.xfail
def test_expected_to_fail(): assert scale(3) == 6
"""
BROKEN = """
from tiny.scale import scale, twice
def test_twice(): assert twice(3) == 6
def test_still(): assert scale(0) == 0
"""
FIXED = {"tiny/scale.py": "def scale(x):\n    return 2 * x\n\n\ndef twice(x):\n    return scale(x)\n"}
TESTS = {
    "tests/test_flaky.py": FLAKY,
    "tests/test_broken.py": BROKEN,
    # As in an upstream whose own settings hide what is unstable.
    "tests/pytest.ini": "[pytest]\naddopts = --reruns 5 --maxfail 1 -k nothing\n",
}
KEPT = "tests/test_flaky.py::test_solid"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Receipt]:
    store = new_store(tmp_path_factory.mktemp("flakes") / "data")
    bundle = write_task(store, TESTS, fixed=FIXED)
    receipt = validated(store, bundle)
    keep(receipt, store.layout.receipt(bundle.id, bundle.tree, "cpu"))
    return store, receipt


def test_what_is_unstable_is_named_with_its_rate_and_left_out(world: tuple[Store, Receipt]) -> None:
    receipt = world[1]
    names = {i.rpartition("::")[2]: rate for i, rate in receipt.flaky_rates.items()}
    assert set(names) == {"test_leans", "test_hashes"}
    assert (names["test_hashes"].reference, names["test_hashes"].nop) == ("1/3", "0/3")
    assert names["test_leans"].reference in ("1/3", "2/3")
    assert [i.rpartition("::")[2] for i in receipt.fail_to_pass if "flaky" in i] == ["test_solid", "test_marked"]


def test_skips_and_expected_failures_are_neither(world: tuple[Store, Receipt]) -> None:
    receipt = world[1]
    assert receipt.facts is not None
    named = {*receipt.fail_to_pass, *receipt.pass_to_pass, *receipt.flaky}
    for name in ("test_skips", "test_skips_on_base", "test_expected_to_fail"):
        assert f"tests/test_flaky.py::{name}" not in named
    assert "skipped" in str(receipt.facts.tests["tests/test_flaky.py::test_skips_on_base"].nop[0])


def test_a_file_that_the_base_cannot_collect_is_tried_again_test_by_test(world: tuple[Store, Receipt]) -> None:
    receipt = world[1]
    second = next(arm for arm in receipt.arms if (arm.arm, arm.repeat) == ("nop", 2))
    assert second.alone == 2
    assert receipt.base_failures["tests/test_broken.py::test_still"] is Failure.COLLECTION
    assert receipt.base_fails is not None and receipt.base_fails.failure is Failure.ASSERTION


def test_arms_say_seed_and_order(world: tuple[Store, Receipt]) -> None:
    assert [(a.seed, a.order) for a in world[1].arms if a.arm == "nop"] == [
        (0, "selected"), (1, "reversed"), (2, "shuffled")
    ]  # fmt: skip


def test_a_task_whose_telling_tests_are_all_unstable_is_refused_and_no_more_is_run(tmp_path: Path) -> None:
    store = new_store(tmp_path / "data")
    text = "from tiny.scale import scale\ndef test_hashes(): assert hash('grid') % 2 == 0 and scale(3) == 6\n"
    receipt = validated(store, write_task(store, {"tests/test_a.py": text}), repeats=5)
    assert (receipt.verdict, receipt.reasons[0].code) == (Verdict.INVALID, "unstable")
    assert len(receipt.arms) == 4 and receipt.repeats == 5


def smith(*args: object, root: Path | None = None) -> subprocess.CompletedProcess[str]:
    where = ["-C", str(root)] if root else []
    return subprocess.run(
        [sys.executable, "-m", "smith.cli.main", *where, *map(str, args)], capture_output=True, text=True, timeout=120
    )


def test_the_receipt_checks_again(world: tuple[Store, Receipt], tmp_path: Path) -> None:
    store, receipt = world
    path = store.layout.receipt(receipt.task, receipt.tree, "cpu")
    done = smith("validate", "--recheck", path)
    assert (done.returncode, done.stdout) == (EXIT_OK, "lab__tiny-7 on cpu: valid, as its facts say\n")
    assert smith("validate", "--recheck", "--all", root=store.layout.root).returncode == EXIT_OK

    document: dict[str, Any] = json.loads(path.read_bytes())
    document["fail_to_pass"].append("tests/test_flaky.py::test_hashes")
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(document))
    done = smith("validate", "--recheck", path, edited)
    assert done.returncode == EXIT_NO
    assert "fail_to_pass: the receipt says also tests/test_flaky.py::test_hashes" in done.stdout
    assert "Traceback" not in done.stderr

    old = Receipt.load(path).model_copy(update={"facts": None})
    old.save(tmp_path / "old.json")
    done = smith("validate", "--recheck", tmp_path / "old.json")
    assert done.returncode == EXIT_NO and "too few facts" in done.stdout and len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "words"), [(None, "no such file"), ("{", "not JSON"), ('{"task": "x"}', "(and 3 more)")]
)
def test_what_is_no_receipt_is_one_line_and_status_2(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "r.json"
    if content is not None:
        path.write_text(content)
    done = smith("validate", "--recheck", path)
    assert done.returncode == EXIT_BAD_INPUT and words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_recheck_wants_files() -> None:
    for args in ((), ("x.json", "--all"), ("--panel", "p")):
        done = smith("validate", "--recheck", *args)
        assert done.returncode == EXIT_BAD_INPUT and "receipt files" in done.stderr


def test_a_panel_holds_what_it_pins_against_its_facts(world: tuple[Store, Receipt]) -> None:
    store, receipt = world
    path = store.layout.receipt(receipt.task, receipt.tree, "cpu")
    panel = make_panel(store, "p", [receipt.task])
    assert check_panel(store, panel) == []
    before = path.read_bytes()
    try:
        # Edited and pinned as edited: only the facts can tell.
        receipt.model_copy(update={"pass_to_pass": ()}).save(path)
        (fault,) = check_panel(store, make_panel(store, "p", [receipt.task]))
        assert "pass_to_pass" in fault and "its facts say" in fault
        receipt.model_copy(update={"pass_to_pass": (), "facts": None}).save(path)
        assert check_panel(store, make_panel(store, "p", [receipt.task])) == []
    finally:
        path.write_bytes(before)


def test_a_receipt_without_facts_gives_way_to_one_with_them(world: tuple[Store, Receipt], tmp_path: Path) -> None:
    receipt = world[1]
    path = tmp_path / "cpu.json"
    receipt.model_copy(update={"facts": None}).save(path)
    keep(receipt, path)
    assert Receipt.load(path) == receipt
    keep(receipt.model_copy(update={"seconds": 9.0}), path)
    assert Receipt.load(path) == receipt
