"""A run as a data set: the layout that loaders read, what is in it, and what must not be."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from drawn_runs import draw, pins, sample_data
from test_compared_runs import smith

from smith.evaluate.run import attempt_folder
from smith.freeze.bundle import Store
from smith.freeze.panels import load_panel, receipts_of
from smith.records.attempt import RunConfig
from smith.records.base import Reason
from smith.records.grade import Grade, GradeVerdict
from smith.records.results import Outcome, TestResult

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (the extra dev)")
SOLVED, FAILED = GradeVerdict.SOLVED, GradeVerdict.FAILED
HELD, OPEN, SAID = pins()[0].id, pins()[1].id, "assert got == expected_by_the_hidden_test"


def hand_in(store: Store, config: RunConfig, task: str, patch: bytes) -> None:
    """Replace what an attempt handed in, and let its grade hold names of hidden tests and what they printed."""
    folder = attempt_folder(store.layout, config.run, task, 1)
    digest = hashlib.sha256(patch).hexdigest()
    (folder / "submission.patch").write_bytes(patch)
    attempt = json.loads((folder / "attempt.json").read_text())
    changed = {"patch_sha256": digest, "patch_bytes": len(patch)}
    (folder / "attempt.json").write_text(json.dumps({**attempt, **changed}))
    ids = hidden_ids(store, task)
    tests = tuple(TestResult(id=i, outcome=Outcome.FAILED, message=SAID) for i in ids)
    reasons = (Reason(code="failed", detail=f"{ids[0]}: {SAID}"),)
    grade = Grade.load(folder / "grade.json")
    grade.model_copy(update={"patch_sha256": digest, "tests": tests, "reasons": reasons}).save(folder / "grade.json")


def hidden_ids(store: Store, task: str) -> list[str]:
    pinned = next(t for t in pins() if t.id == task)
    receipt = receipts_of(store.layout, task, pinned.tree)[0].receipt
    return [*receipt.fail_to_pass, *receipt.pass_to_pass]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A run, one task of which a held-out panel has, and one attempt at which is the reference."""
    store = sample_data(tmp_path_factory.mktemp("dataset") / "data")
    panel = load_panel(store.layout, "sample")
    held = panel.model_copy(update={"name": "held", "split": "held_out", "tasks": panel.tasks[:1]})
    held.save(store.layout.panel("held"))
    odd = {task.id for task in pins()[::2]}
    config = draw(store.layout, "mixed", lambda task, n: None if n == 2 and task in odd else (SOLVED, None), attempts=2)
    hand_in(store, config, HELD, b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+gives_the_solution_away\n")
    reference = store.load(pins()[2].id).reference
    hand_in(store, config, pins()[2].id, reference + b"\n")
    hand_in(store, config, OPEN, b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+\xe2\x80\xa8an_honest_try\n")
    hand_in(store, config, pins()[4].id, b"+\xff\n")
    return store


@pytest.fixture(scope="module")
def written(world: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("written")
    smith(world, "report", "mixed", "--parquet", str(out / "parquet"), "--jsonl", str(out / "jsonl"))
    return out


def front(folder: Path) -> dict[str, Any]:
    _, text, body = (folder / "README.md").read_text().split("---\n", 2)
    assert body.startswith("\n# drawn on sample")
    found = yaml.safe_load(text)
    assert isinstance(found, dict)
    return found


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    config = next(c for c in front(folder)["configs"] if c["config_name"] == name)
    (file,) = config["data_files"]
    path = folder / file["path"]
    if path.suffix == ".parquet":
        found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return found
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_the_card_says_what_the_files_hold(written: Path, form: str) -> None:
    folder = written / form
    card = front(folder)
    assert [c["config_name"] for c in card["configs"]] == ["attempts", "tasks", "figures"]
    assert [c.get("default", False) for c in card["configs"]] == [True, False, False]
    named = {file["path"] for c in card["configs"] for file in c["data_files"]}
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == {*named, "README.md"}
    for info in card["dataset_info"]:
        rows = rows_of(folder, info["config_name"])
        (split,) = info["splits"]
        assert split["num_examples"] == len(rows) > 0
        (file,) = next(c["data_files"] for c in card["configs"] if c["config_name"] == info["config_name"])
        assert split["num_bytes"] == (folder / file["path"]).stat().st_size
        names = [feature["name"] for feature in info["features"]]
        assert all(list(row) == names for row in rows)


def test_types_of_the_files_are_those_of_the_card(written: Path) -> None:
    card = front(written / "parquet")
    arrow = {"string": "string", "int64": "int64", "float64": "double", "bool": "bool"}
    for info in card["dataset_info"]:
        schema = pq.read_schema(written / "parquet" / "data" / f"{info['config_name']}.parquet")
        for feature, field in zip(info["features"], schema, strict=True):
            if "list" in feature:
                assert str(field.type).startswith("list<") and str(field.type.value_type) == arrow[feature["list"]]
            else:
                assert str(field.type) == arrow[feature["dtype"]], field


def test_both_forms_hold_the_same_and_agree_with_the_report(world: Store, written: Path) -> None:
    for name in ("attempts", "tasks", "figures"):
        assert rows_of(written / "parquet", name) == rows_of(written / "jsonl", name)
    attempts = rows_of(written / "parquet", "attempts")
    document = json.loads(smith(world, "report", "mixed", "--json"))
    assert [r["verdict"] for r in attempts] == [a["verdict"] for a in document["attempts"]]
    assert sum(r["solved"] for r in attempts) == document["scores"]["solved"]["count"]
    assert sum(r["verdict"] is None for r in attempts) == document["scores"]["missing"] > 0
    tasks = rows_of(written / "parquet", "tasks")
    assert sum(t["attempts_solved"] for t in tasks) == document["scores"]["solved"]["count"]
    assert {t["license"] for t in tasks} == {"MIT"} and all(t["repo"] == "smith-lab/minikernels" for t in tasks)
    figures = {f["figure"]: f["value"] for f in rows_of(written / "parquet", "figures")}
    assert figures["pass@1"] == pytest.approx(document["scores"]["pass_at_1"])


def test_nothing_of_hidden_tests_or_of_what_is_held_out_is_in_it(world: Store, written: Path) -> None:
    whole = b"".join(p.read_bytes() for p in (written / "jsonl").rglob("*") if p.is_file())
    whole += json.dumps([rows_of(written / "parquet", n) for n in ("attempts", "tasks", "figures")]).encode()
    assert SAID.encode() not in whole and b"gives_the_solution_away" not in whole
    for task in (HELD, OPEN):
        for test in hidden_ids(world, task):
            assert test.partition("[")[0].rpartition("::")[2].encode() not in whole, test
    for task in pins():
        for line in world.load(task.id).reference.splitlines():
            if line[:1] == b"+" and len(line) > 30 and not line.startswith(b"+++"):
                assert json.dumps(line.decode()[1:]).strip('"').encode() not in whole, task.id
    assert b"an_honest_try" in whole  # what may be told is there
    why = {(r["task"], r["attempt"]): r["patch_left_out"] for r in rows_of(written / "jsonl", "attempts")}
    assert why[HELD, 1] == "held_out" and why[OPEN, 1] == "" and why[pins()[2].id, 1] == "reference"
    assert why[pins()[4].id, 1] == "not_text" and "missing" in why.values()
    assert [t["held_out"] for t in rows_of(written / "jsonl", "tasks")] == [True] + [False] * (len(pins()) - 1)
    assert f"(1 of {len(pins())} tasks)" in (written / "jsonl" / "README.md").read_text()


def test_lines_are_lines_for_every_reader(written: Path) -> None:
    text = (written / "jsonl" / "data" / "attempts.jsonl").read_text()
    assert len(text.splitlines()) == text.count("\n") == 2 * len(pins())


def test_one_folder_holds_one_form(world: Store, tmp_path: Path) -> None:
    said = smith(world, "report", "mixed", "--parquet", str(tmp_path), "--jsonl", str(tmp_path), status=2)
    assert "a folder each" in said and not list(tmp_path.iterdir())
