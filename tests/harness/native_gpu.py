"""A GPU that is none, for tests of how tests run on one: the machine's files, a lease, and Triton's driver in a tree.

The driver compiles for gfx942 as Triton does and launches nothing. Everything else (sandbox, channel, pytest, Triton's
own ``JITFunction.run``) is real.
"""

from __future__ import annotations

DRIVER = """
import functools

import torch
import triton
from triton.backends.compiler import GPUTarget


class Utils:
    def get_device_properties(self, device=0):
        return {"max_shared_mem": 65536, "multiprocessor_count": 304, "warpSize": 64, "max_num_regs": 65536}

    def load_binary(self, name, kernel, shared, device):
        assert kernel[:4] == b"\\x7fELF", "the kernel was not compiled"
        return 1, 1, 10, 0, 1024

    def unload_module(self, module):
        pass


class Launcher:
    launched = []

    def __init__(self, src, metadata):
        self.name = src.fn.__name__ if hasattr(src.fn, "__name__") else str(src)

    def __call__(self, *args):
        Launcher.launched.append(self.name)


class Driver:
    utils, launcher_cls = Utils(), Launcher

    def get_current_target(self):
        return GPUTarget("hip", "gfx942", 64)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_active_torch_device(self):
        return torch.device("cpu")


triton.runtime.driver.set_active(Driver())
"""
KERNELS = """
import triton
import triton.language as tl
from lib import helpers


@triton.jit
def unused(x):
    return x


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = helpers.plus(tl.load(x + at, inside), tl.load(y + at, inside))
    tl.store(out + at, tl.where(total > 0, total, tl.zeros_like(total)), inside)


def run_add(x, y):
    import torch

    out = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out
"""
HELPERS = """
import triton


@triton.jit
def inner(x):
    return x


@triton.jit
def plus(x, y):
    return inner(x) + y
"""
TESTS = """
import os

import pytest
import torch
import triton

from lib import driver, kernels


def test_two_launches():
    x = torch.ones(100)
    kernels.run_add(x, x)
    kernels.run_add(x, x)
    assert driver.Launcher.launched[-2:] == ["add", "add"]


def test_host_code_only():
    assert triton.cdiv(100, 64) == 2


def test_a_refused_launch_is_none():
    with pytest.raises(TypeError):
        kernels.add[(1,)](torch.ones(4))


def test_warming_up_is_no_launch():
    x = torch.ones(100)
    kernels.add.warmup(x, x, x, 100, BLOCK=64, grid=(1,))


def test_it_is_a_gpu_run():
    assert "TRITON_INTERPRET" not in os.environ
    assert os.environ["SMITH_DEVICE"] == "rocm:gfx942"
    assert os.environ["ROCR_VISIBLE_DEVICES"] == "GPU-4b2c9a6f00d1e2f3"
    assert os.listdir("/dev/dri") == ["renderD128"] and os.path.exists("/dev/kfd")
    assert type(kernels.add).__name__ == "JITFunction"
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1, device="cuda")  # nothing plays a GPU here
"""
