"""The sanitizer, end to end: findings come with the test in which a kernel went wrong."""

from __future__ import annotations

import pytest
from harness_bench import Bench, OwnEnvironment
from pydantic import ValidationError

from smith.errors import Unavailable
from smith.harness.run import run
from smith.records.memory import FindingKind, MemoryFinding
from smith.records.results import Outcome, TestResult, TestRun

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def fetch(ptr, offsets, mask):
    return tl.load(ptr + offsets, mask=mask, other=0.0)

@triton.jit
def scale_kernel(x_ptr, y_ptr, n, wide, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = fetch(x_ptr, offsets, offsets < n + wide)
    tl.store(y_ptr + offsets, x * 2, mask=offsets < n)

def scale(x, wide=0):
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), wide, BLOCK=64)
    return y
"""

TESTS = """
import torch
from ops.kernels import scale
def test_clean():
    x = torch.randn(100, device="cuda")
    torch.testing.assert_close(scale(x), x * 2)
def test_wild():
    x = torch.randn(100, device="cuda")
    torch.testing.assert_close(scale(x, wide=3), x * 2)
def test_bare():
    assert scale(torch.empty(70, device="cuda")).shape == (70,)
"""

IDS = tuple(f"tests/test_ops.py::test_{name}" for name in ("clean", "wild", "bare"))


def ran(bench: Bench, sanitize: bool) -> TestRun:
    bench.device = "interpreter:gfx942"
    bench.write("ops/kernels.py", KERNEL)
    bench.write("tests/test_ops.py", TESTS)
    return run(
        bench.sandbox, bench.place, OwnEnvironment(), bench.recipe, bench.device, IDS,
        id_timeout_s=60, wall_s=240, sanitize=sanitize,
    )  # fmt: skip


def test_findings_belong_to_tests_and_name_the_line(bench: Bench) -> None:
    pytest.importorskip("triton")
    done = ran(bench, sanitize=True)
    assert [r.outcome for r in done.results] == [Outcome.PASSED] * 3, done
    clean, wild, bare = (r.findings for r in done.results)
    assert clean == ()
    (finding,) = wild
    assert finding.kind is FindingKind.OUT_OF_BOUNDS_READ
    assert (finding.kernel, finding.function) == ("ops/kernels.py::scale_kernel", "ops/kernels.py::fetch")
    assert (finding.path, finding.line) == ("ops/kernels.py", KERNEL.splitlines().index(
        "    return tl.load(ptr + offsets, mask=mask, other=0.0)") + 1)  # fmt: skip
    assert (finding.program, finding.argument, finding.offset, finding.lanes) == ((1, 0, 0), "x_ptr", 100, 3)
    assert str(finding) == (
        "out_of_bounds_read: load of x_ptr[100] at ops/kernels.py:8 in fetch, program (1, 0, 0)"
    )  # fmt: skip
    assert [f.kind for f in bare] == [FindingKind.UNINITIALISED_READ]


def test_nothing_is_watched_unless_asked_for(bench: Bench) -> None:
    pytest.importorskip("triton")
    done = ran(bench, sanitize=False)
    assert all(r.findings == () and "findings" not in r.model_dump() for r in done.results)


def test_only_the_interpreter_has_it(bench: Bench) -> None:
    bench.write("test_one.py", "def test_it(): pass\n")
    with pytest.raises(Unavailable, match="not on cpu"):
        run(
            bench.sandbox, bench.place, OwnEnvironment(), bench.recipe, "cpu", ["test_one.py::test_it"],
            id_timeout_s=9, wall_s=60, sanitize=True,
        )  # fmt: skip


def test_a_finding_from_inside_is_bounded() -> None:
    shape = {
        "kind": "race", "kernel": "k", "function": "f", "path": "p", "line": 1, "program": (0, 0, 0),
        "operation": "store", "argument": "x", "lanes": 1, "times": 1,
    }  # fmt: skip
    finding = MemoryFinding.model_validate(shape)
    assert TestResult(id="t", outcome=Outcome.PASSED, findings=(finding,)).findings[0].kind.is_fault
    for wrong in ({"path": "p" * 501}, {"line": -1}, {"lanes": 0}, {"operation": "jump"}, {"more": 1}):
        with pytest.raises(ValidationError):
            MemoryFinding.model_validate({**shape, **wrong})
