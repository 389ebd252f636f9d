"""The device interpreter, end to end: a kernel launched from a test, on a machine without a GPU."""

from __future__ import annotations

import pytest
from harness_bench import Bench

from smith.records.results import Failure, Outcome

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def scaled(x, factor):
    return x * factor

@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, scaled(tl.load(x_ptr + offsets, mask=offsets < n), 2.0), mask=offsets < n)

def scale(x):
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y

@triton.jit
def broken_kernel(x_ptr):
    tl.store(x_ptr, no_such_name)

def broken(x):
    broken_kernel[(1,)](x)
"""

TESTS = """
import torch, pytest
from ops.kernels import scale, broken
def test_scale():
    x = torch.randn(100, device="cuda")
    torch.testing.assert_close(scale(x), x * 2)
def test_wrong(): 
    x = torch.ones(100, device="cuda")
    torch.testing.assert_close(scale(x), x * 3)
def test_broken(): broken(torch.ones(1, device="cuda"))
def test_host(): assert torch.cuda.is_available()
"""


def test_launches_and_kernel_errors_are_told_by_id(bench: Bench) -> None:
    pytest.importorskip("triton")
    bench.device = "interpreter:gfx942"
    bench.write("ops/kernels.py", KERNEL)
    bench.write("tests/test_ops.py", TESTS)
    # A file that would stand for torch, were it not imported before the repository is on the path.
    bench.write("torch.py", "import os; os._exit(0)\n")
    done = bench.run(*(f"tests/test_ops.py::test_{n}" for n in ("scale", "wrong", "broken", "host")), id_timeout_s=60)
    assert [(r.outcome, r.failure) for r in done.results] == [
        (Outcome.PASSED, None),
        (Outcome.FAILED, Failure.ASSERTION),
        (Outcome.FAILED, Failure.KERNEL_ERROR),
        (Outcome.PASSED, None),
    ], done
    first = done.results[0].launches
    assert first.pop("ops/kernels.py::scaled") >= 1 and first == {"ops/kernels.py::scale_kernel": 1}
    assert done.results[3].launches == {}
    assert done.complete
