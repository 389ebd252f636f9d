"""The stock package reads what is written: SMITH_SWEBENCH names a Python in which ``swebench`` 5 is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import new_data_repository

STOCK = os.environ.get("SMITH_SWEBENCH", "")
READ = """
import json, sys
from swebench.harness.grading import get_eval_report
from swebench.harness.log_parsers import PARSER_REGISTRY
from swebench.harness.utils import get_predictions_from_file, load_swebench_dataset, make_test_spec
from swebench.task.checks import check_task_repo
from swebench.task.repo import load_task_repo
rows, folder, log = sys.argv[1:]
loaded = [dict(row) for row in load_swebench_dataset(rows, "test")]
there = {t["instance_id"]: {k: v for k, v in t.items() if k != "datasets"} for t in load_task_repo(folder)}
graded = {}
for row in loaded:
    spec, ids = make_test_spec(row), [*row["FAIL_TO_PASS"], *row["PASS_TO_PASS"]]
    for word in ("PASSED", "FAILED"):
        lines = [f"{word} {i}" + (" - why - so" if word == "FAILED" else "") for i in ids]
        open(log, "w").write("\\n".join([">>>>> Start Test Output", *lines, ">>>>> End Test Output"]))
        report = get_eval_report(spec, {"instance_id": spec.instance_id, "model_patch": "x"}, log, True)
        graded.setdefault(word, []).append(report[spec.instance_id]["resolved"])
print(json.dumps({
    "same": [there[row["instance_id"]] == row for row in loaded],
    "problems": [str(p) for p in check_task_repo(folder)],
    "graded": graded,
    "gold": len(get_predictions_from_file("gold", rows, "test")),
}))
"""


@pytest.mark.skipif(not STOCK, reason="SMITH_SWEBENCH names no Python with swebench")
def test_stock_swebench_reads_checks_and_grades_the_sample_panel(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    smith = [sys.executable, "-m", "smith.cli.main", "-C", str(new_data_repository(tmp_path / "d").layout.root)]
    for name in ("tasks", "panels"):
        (tmp_path / "d" / name).symlink_to(root / name)
    rows, folder = tmp_path / "rows.jsonl", tmp_path / "tasks"
    for out in (rows, folder):
        subprocess.run([*smith, "export", "swebench", str(out), "--panel", "sample"], check=True)
    done = subprocess.run(
        [STOCK, "-c", READ, str(rows), str(folder), str(tmp_path / "log")], capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout.splitlines()[-1])
    count = len(rows.read_text().splitlines())
    assert count >= 20 and said["problems"] == []
    assert said["same"] == [True] * count and said["gold"] == count
    assert said["graded"] == {"PASSED": [True] * count, "FAILED": [False] * count}
