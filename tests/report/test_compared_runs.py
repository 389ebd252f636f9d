"""``smith report`` and ``smith compare`` on runs of the sample's real bundles."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from drawn_runs import draw, pins, sample_data

from smith.freeze.bundle import Store
from smith.records.grade import GradeVerdict

SOLVED, FAILED = GradeVerdict.SOLVED, GradeVerdict.FAILED
TIMED = "smith-lab__minikernels-24"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = sample_data(tmp_path_factory.mktemp("reports") / "data")
    odd = {task.id for task in pins()[::2]}
    draw(store.layout, "weak", lambda task, _: (FAILED if task in odd else SOLVED, 1.1 if task == TIMED else None))
    draw(store.layout, "strong", lambda task, _: (SOLVED, 2.2 if task == TIMED else None), model="m")
    draw(store.layout, "torn", lambda task, _: None if task in odd else (SOLVED, None))
    draw(store.layout, "some", lambda task, n: (SOLVED if n == 2 else FAILED, None), tasks=pins()[3:], attempts=3)
    draw(store.layout, "other", lambda *_: (SOLVED, None), tasks=(pins()[0].model_copy(update={"tree": "1" * 40}),))
    return store


def smith(store: Store, *args: str, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), *args], capture_output=True, text=True
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if status == 0 else done.stderr


def parsed(store: Store, *args: str) -> Any:
    return json.loads(smith(store, *args, "--json"))


def test_the_better_run_is_told_with_its_interval(world: Store) -> None:
    found = parsed(world, "compare", "weak", "strong")
    one = found["others"][0]["comparison"]
    n = len(pins())
    wrong = len(pins()[::2])
    assert (one["tasks"], one["only_second"], one["only_first"]) == (n, wrong, 0)
    assert one["difference"] == pytest.approx(wrong / n) and 0 < one["low"] < wrong / n < one["high"]
    assert one["told"] == "second" and one["p_value"] < 0.001
    words = smith(world, "compare", "weak", "strong")
    assert "strong solves more than weak" in words and f"n = {n} tasks" in words
    assert smith(world, "compare", "strong", "weak").count("strong solves more than weak") == 1


def test_speed_is_compared_where_both_solved_and_it_was_measured(world: Store) -> None:
    found = parsed(world, "compare", "weak", "strong")["others"][0]["comparison"]["speed"]
    timed_by_both = TIMED not in {t.id for t in pins()[::2]}
    assert (found is not None) is timed_by_both
    if found:
        assert found["ratio"] == pytest.approx(2.0) and found["tasks"] == 1


def test_what_is_missing_has_not_solved_and_is_said(world: Store) -> None:
    found = parsed(world, "compare", "torn", "weak")
    assert found["others"][0]["comparison"]["told"] == "nothing"
    assert any("torn misses" in note for note in found["notes"])
    assert "no difference between torn and weak can be told" in smith(world, "compare", "torn", "weak")


def test_only_tasks_of_both_are_compared(world: Store) -> None:
    found = parsed(world, "compare", "strong", "some")
    assert found["others"][0]["comparison"]["tasks"] == len(pins()) - 3
    assert any("3 tasks more" in note for note in found["notes"])
    assert any("attempts a task differ (1, 3)" in note for note in found["notes"])


def test_more_than_two_runs_are_corrected(world: Store) -> None:
    alone = parsed(world, "compare", "weak", "strong")["others"][0]["comparison"]["p_value"]
    found = parsed(world, "compare", "weak", "strong", "torn")
    assert found["others"][0]["comparison"]["p_value"] == pytest.approx(2 * alone)
    assert any("Holm" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["compare", "weak"], "two runs or more"),
        (["compare", "weak", "weak"], "named twice"),
        (["compare", "weak", "none"], "no run none"),
        (["compare", "weak", "other"], "no task in common"),
        (["report", "weak", "--by", "merged"], "wants --cutoff"),
        (["report", "weak", "--cutoff", "2025-13"], "is no month"),
        (["report", "weak", "--by", "colour"], "colour"),
    ],
)
def test_bad_input_is_one_line(world: Store, args: list[str], words: str) -> None:
    said = smith(world, *args, status=2)
    assert words in said and len(said.strip().splitlines()) == 1


def test_strata_hold_every_task(world: Store) -> None:
    scores = parsed(world, "report", "strong", "--cutoff", "2024-01")["scores"]
    assert set(scores["strata"]) == {"kind", "language", "device", "size", "merged"}
    for dimension in ("kind", "device", "size", "merged"):
        assert sum(s["tasks"] for s in scores["strata"][dimension].values()) == len(pins()), dimension
    assert "unknown" not in json.dumps(scores["strata"])
    assert "by kind" in smith(world, "report", "strong", "--by", "kind")


def test_a_run_of_several_attempts_has_pass_at_k(world: Store) -> None:
    scores = parsed(world, "report", "some")["scores"]
    assert scores["pass_at"]["1"]["mean"] == pytest.approx(1 / 3) and scores["pass_at"]["3"]["mean"] == 1.0
    assert scores["pass_at"]["2"]["mean"] == pytest.approx(2 / 3)
    assert "pass@3 100 %" in smith(world, "report", "some")


def test_the_reference_is_the_expert(world: Store, tmp_path: Path) -> None:
    speed = parsed(world, "report", "strong")["scores"]["speed"]
    assert speed["timed"] == 2  # the sample's two tasks about speed
    assert 0 < speed["expert_harmonic"] < 1  # 2.2 times is less than the reference reaches
    assert speed["reached"]["mean"] == 0
    assert speed["geomean"]["ratio"] == pytest.approx(2.2)
    lines = smith(world, "report", "strong")
    assert "of 2 timed tasks" in lines and "a solved task costs $0.25, 10,000 tokens" in lines
