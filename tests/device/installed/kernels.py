"""Small Triton kernels that show, one each, what goes wrong in a plain interpreter."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

alias = tl.exp


@triton.jit
def float_argument(out, eps):
    tl.store(out, eps.to(tl.float32))


@triton.jit
def loop_variable(out, n):
    total = tl.zeros((1,), dtype=tl.int64)
    for i in range(n):
        total += i.to(tl.int64)
    tl.store(out + tl.arange(0, 1), total)


@triton.jit
def library_function(x, out, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(out + offsets, libdevice.tanh(tl.load(x + offsets)))


@triton.jit
def integer_mask(x, out, flag, N: tl.constexpr):
    offsets = tl.arange(0, N)
    mask = (offsets < 3) & flag
    tl.store(out + offsets, tl.load(x + offsets, mask=mask, other=0.0))


@triton.jit
def wrong_assumption(out, n):
    tl.assume(n > 1000)
    tl.store(out, n)


@triton.jit
def aliased_builtin(x, out, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(out + offsets, alias(tl.load(x + offsets)))


@triton.jit
def bfloat16_sum(x, y, out, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(out + offsets, tl.load(x + offsets) + tl.load(y + offsets))


@triton.jit
def assembly(x, out):
    value = tl.load(x)
    tl.store(out, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [value], tl.float32, is_pure=True, pack=1))


@triton.jit
def twice(value):
    return value + value


@triton.jit
def nested(x, out, N: tl.constexpr):
    offsets = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + offsets, twice(tl.load(x + offsets)))
    tl.atomic_add(out + offsets, 1.0)


@triton.jit
def maximum(left, right):
    return tl.maximum(left, right)


@triton.jit
def combined(x, out, N: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, N)), 0, maximum))


def tuned(configs: int = 2) -> Any:
    """An autotuned kernel whose key names something that is no argument."""

    @triton.autotune([triton.Config({"N": 4 * (i + 1)}) for i in range(configs)], key=["n", "not_an_argument"])
    @triton.jit
    def kernel(out, n, N: tl.constexpr):
        tl.store(out, N)

    return kernel


def run_float_argument() -> float:
    out = torch.zeros(1)
    float_argument[(1,)](out, 0.5)
    return out.item()


def run_loop_variable() -> int:
    out = torch.zeros(1, dtype=torch.int64)
    loop_variable[(1,)](out, 4)
    return int(out.item())


def run_library_function() -> float:
    out = torch.zeros(4)
    library_function[(1,)](torch.full((4,), 0.5), out, 4)
    return round(out[3].item(), 4)


def run_integer_mask() -> list[float]:
    out = torch.zeros(4)
    integer_mask[(1,)](torch.ones(4), out, 1, 4)
    return list(out.tolist())


def run_wrong_assumption() -> int:
    out = torch.zeros(1, dtype=torch.int32)
    wrong_assumption[(1,)](out, 3)
    return int(out.item())


def run_aliased_builtin() -> float:
    out = torch.zeros(4)
    aliased_builtin[(1,)](torch.zeros(4), out, 4)
    return out[0].item()


def run_bfloat16_sum() -> list[float]:
    out = torch.zeros(4, dtype=torch.bfloat16)
    bfloat16_sum[(1,)](torch.full_like(out, 1.5), torch.full_like(out, 2.0), out, 4)
    return list(out.tolist())


def run_assembly() -> float:
    out = torch.zeros(1)
    assembly[(1,)](torch.ones(1), out)
    return out.item()


def run_unknown_key() -> int:
    out = torch.zeros(1, dtype=torch.int32)
    tuned(1)[(1,)](out, 3)
    return int(out.item())


def run_driver() -> str:
    return str(triton.runtime.driver.active.get_current_target().arch)


def run_cuda_factory() -> str:
    return torch.empty(2, device="cuda").device.type


def run_cuda_available() -> bool:
    return torch.cuda.is_available()


def run_cuda_generator() -> str:
    return torch.Generator(device="cuda").device.type


def run_integer_histc() -> list[int]:
    return list(torch.histc(torch.tensor([0, 1, 1, 3]), bins=4, min=0, max=3).tolist())


def run_module_cuda() -> str:
    return torch.nn.Linear(2, 2).cuda().weight.device.type


def run_stream() -> bool:
    with torch.cuda.stream(torch.cuda.Stream()):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        torch.cuda.current_stream().wait_event(event)
    return event.elapsed_time(torch.cuda.Event(enable_timing=True)) >= 0


def run_memory() -> bool:
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.mem_get_info()[1] > 0 and torch.cuda.max_memory_allocated() == 0
