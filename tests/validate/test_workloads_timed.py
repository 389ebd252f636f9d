"""A performance task without any workload file: what its tests call is timed, and held against every submission."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_tasks import TASK, new_store, tree_of, write_task

from smith.environment.layers import build
from smith.freeze.bundle import Bundle, Store
from smith.freeze.panels import StoredReceipt
from smith.freeze.workloads import keep_workload
from smith.git.patches import diff
from smith.grade.grader import grade
from smith.grade.trial import Bench
from smith.inside.recorded_cases import cases_of
from smith.records.candidate import Kind
from smith.records.grade import Grade, GradeVerdict
from smith.records.receipt import Answer, ReasonCode, Receipt, Verdict
from smith.records.recipe import EnvironmentChoice
from smith.sandbox import make
from smith.validate.validate import Validation
from smith.validate.workloads import noted
from smith.verdict.recheck import recheck

torch = pytest.importorskip("torch")

SLOW = {
    "tiny/__init__.py": "",
    "tiny/scale.py": "import torch\n\ndef scale(x):\n    return torch.stack([row * 2 for row in x])\n",
}
FAST = {"tiny/scale.py": "import torch\n\ndef scale(x):\n    return x * 2\n"}
TESTS = {
    "tests/test_scale.py": "import torch\nfrom tiny.scale import scale\n\n"
    "def test_scale():\n    x = torch.randn(300, 8)\n    assert torch.equal(scale(x), x * 2)\n"
}


def validation(store: Store, bundle: Bundle, *, recording: bool) -> Validation:
    return Validation(
        bundle,
        Bench(store, make("host"), "cpu"),
        repeats=1,
        builder=lambda choice: build(choice, store.layout.environments),
        recording=recording,
    )


def graded(store: Store, bundle: Bundle, receipt: Receipt, text: str) -> Grade:
    patch = diff(store.scratch, bundle.spec.source.tree, tree_of(store, {**SLOW, "tiny/scale.py": text}))
    environment = build(EnvironmentChoice(name="default"), store.layout.environments)
    return grade(bundle, patch, StoredReceipt(receipt, "1" * 40), Bench(store, make("host"), "cpu"), environment)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_recorded_calls_are_timed(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    (tmp_path / "smith.toml").write_text("schema_version = 1\n\n[timing]\nforeign = 1.0\n")
    bundle = write_task(store, TESTS, base=SLOW, fixed=FAST, kind=Kind.PERF)
    without = validation(store, bundle, recording=False).receipt()
    assert [r.code for r in without.reasons] == [ReasonCode.NEEDS_WORKLOAD]
    made = validation(store, bundle, recording=True)
    receipt = made.receipt()
    assert (receipt.verdict, receipt.reasons) == (Verdict.VALID, ())
    assert receipt.timing is not None and receipt.timing.answer is Answer.FASTER
    (case,) = receipt.timing.cases
    assert case.case == "1: tiny.scale.scale(float32[300, 8])" and case.low > 1.5
    assert recheck(receipt) == []
    assert made.workload is not None and [one.base for one in made.workload.calls] == [""]
    keep_workload(store.layout, made.workload)
    receipt = noted(receipt, made.workload)
    assert receipt.task == TASK
    solved = graded(store, bundle, receipt, FAST["tiny/scale.py"])
    assert (solved.verdict, solved.reasons) == (GradeVerdict.SOLVED, ())
    assert solved.oracle is not None and solved.speedup is not None
    remembered = "import torch\n\nSEEN = {}\n\ndef scale(x):\n    return SEEN.setdefault(x.shape, x * 2)\n"
    cached = graded(store, bundle, receipt, remembered)
    assert [r.code for r in cached.reasons] == ["oracle_mismatch"] and cached.speedup is None


def test_a_case_draws_what_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "timed_tiny.py").write_text("def both(x, table, mask):\n    return x[table].sum(-1), mask\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    call = {
        "kind": "function", "entry": "timed_tiny.both", "module": "timed_tiny",
        "args": [
            {"kind": "tensor", "tensor": {
                "shape": [5, 4], "strides": [1, 5], "dtype": "float16", "grad": True,
                "fill": {"kind": "normal", "mean": 1.5, "std": 1.0, "low": 1.0, "high": 2.0},
            }},
            {"kind": "tensor", "tensor": {
                "shape": [3], "dtype": "int64", "fill": {"kind": "shuffled", "values": [4, 0, 2]},
            }},
            {"kind": "tensor", "tensor": {"shape": [64], "dtype": "bool", "fill": {"kind": "share", "mean": 1.0}}},
        ],
        "upstream": [{"output": 0, "tensor": {
            "shape": [3], "dtype": "float16", "fill": {"kind": "normal", "mean": 1.0},
        }}],
    }  # fmt: skip
    ((name, make_one),) = cases_of([("1: both", call)])
    torch.manual_seed(3)
    first = make_one()()
    assert name == "1: both" and isinstance(first, list)
    rows, mask, gradient = first
    assert rows.shape == (3,) and bool(((rows >= 4) & (rows <= 8)).all()) and bool(mask.all())
    assert gradient.sum(1).tolist() == [4.0, 0.0, 4.0, 0.0, 4.0]
    torch.manual_seed(3)
    again = make_one()()
    assert isinstance(again, list) and torch.equal(again[0], rows)
    other = make_one()()
    assert isinstance(other, list) and not torch.equal(other[0], rows)
