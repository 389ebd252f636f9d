"""bfloat16 and fp8 in kernels, bit for bit against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from smith.device.interpreter import NotInterpretable
from smith.device.interpreter.versions import triton_version

N = 32
bits = st.binary(min_size=2 * N, max_size=2 * N).map(
    lambda raw: torch.from_numpy(np.frombuffer(raw, dtype=np.int16).copy()).view(torch.bfloat16)
)
examples = settings(max_examples=12, deadline=None)


@triton.jit
def binary(x, y, out, N: tl.constexpr, OP: tl.constexpr):
    offsets = tl.arange(0, N)
    a, b = tl.load(x + offsets), tl.load(y + offsets)
    if OP == "add":
        c = a + b
    elif OP == "sub":
        c = a - b
    elif OP == "mul":
        c = a * b
    elif OP == "div":
        c = (a / b).to(tl.bfloat16)
    elif OP == "maximum":
        c = tl.maximum(a, b)
    elif OP == "minimum":
        c = tl.minimum(a, b)
    elif OP == "where":
        c = tl.where(a > b, a, b)
    elif OP == "abs":
        c = tl.abs(a)
    elif OP == "lt":
        c = (a < b).to(tl.bfloat16)
    else:
        c = (a == b).to(tl.bfloat16)
    tl.store(out + offsets, c)


def ignoring_nan(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The number where one operand is NaN; torch.fmin answers NaN for a signalling one."""
    return lambda a, b: torch.where(a.isnan(), b, torch.where(b.isnan(), a, choose(a, b)))


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "maximum": ignoring_nan(torch.maximum),
    "minimum": ignoring_nan(torch.minimum),
    "where": lambda a, b: torch.where(a > b, a, b),
    "abs": lambda a, b: a.abs(),
    "lt": lambda a, b: (a < b).bfloat16(),
    "eq": lambda a, b: (a == b).bfloat16(),
}


def same(actual: Any, expected: Any) -> bool:
    """Equal bit for bit, except that one NaN is as good as another and so is a zero's sign."""
    return torch.equal(actual.nan_to_num(nan=12345.0), expected.nan_to_num(nan=12345.0))


@pytest.mark.parametrize("name", OPERATIONS)
@examples
@given(x=bits, y=bits)
def test_operation(name: str, x: Any, y: Any) -> None:
    out = torch.empty_like(x)
    binary[(1,)](x, y, out, N, name)
    assert same(out, OPERATIONS[name](x, y))


@triton.jit
def cast(x, out, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(out + offsets, tl.load(x + offsets).to(out.dtype.element_ty))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
@examples
@given(x=bits)
def test_cast_from_bfloat16(dtype: Any, x: Any) -> None:
    out = torch.empty(N, dtype=dtype)
    cast[(1,)](x, out, N)
    assert same(out, x.to(dtype))


@examples
@given(raw=st.binary(min_size=4 * N, max_size=4 * N))
def test_cast_to_bfloat16_rounds_to_nearest_even(raw: bytes) -> None:
    x = torch.from_numpy(np.frombuffer(raw, dtype=np.float32).copy())
    out = torch.empty(N, dtype=torch.bfloat16)
    cast[(1,)](x, out, N)
    assert same(out, x.bfloat16())


def test_cast_between_bfloat16_and_integers() -> None:
    numbers = torch.arange(-N // 2, N // 2, dtype=torch.int32)
    narrow = torch.empty(N, dtype=torch.bfloat16)
    cast[(1,)](numbers, narrow, N)
    back = torch.empty_like(numbers)
    cast[(1,)](narrow, back, N)
    assert torch.equal(narrow, numbers.bfloat16()) and torch.equal(back, numbers)


@triton.jit
def reduced(x, out, N: tl.constexpr):
    a = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(a, 0).to(tl.bfloat16))
    tl.store(out + 1, tl.max(a, 0).to(tl.bfloat16))
    tl.store(out + 2, tl.min(a, 0).to(tl.bfloat16))
    tl.store(out + 3, tl.argmax(a, 0).to(tl.bfloat16))
    tl.store(out + 4 + tl.arange(0, N), tl.cumsum(a, 0))


small = st.lists(st.integers(-4, 4), min_size=N, max_size=N).map(lambda v: torch.tensor(v, dtype=torch.bfloat16))


@examples
@given(x=small)
def test_reductions_and_scans(x: Any) -> None:
    out = torch.empty(4 + N, dtype=torch.bfloat16)
    reduced[(1,)](x, out, N)
    first = [x.sum(), x.max(), x.min(), x.float().argmax().bfloat16()]
    assert out[:4].tolist() == [value.item() for value in first]
    assert torch.equal(out[4:], x.float().cumsum(0).bfloat16())


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def own_combine(x, out, N: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, N)), 0, product))


def test_reduction_with_a_kernels_own_combine_function() -> None:
    x = torch.tensor([1.5, -2.0, 0.5, 4.0], dtype=torch.bfloat16)
    out = torch.empty(1, dtype=torch.bfloat16)
    own_combine[(1,)](x, out, 4)
    assert out.item() == -6.0


@triton.jit
def accumulated(x, out, old, N: tl.constexpr):
    offsets = tl.arange(0, N)
    before = tl.atomic_add(out + offsets % 2, tl.load(x + offsets), mask=offsets < N - 1)
    tl.store(old + offsets, before)


@pytest.mark.skipif(triton_version() < (3, 4), reason="Triton before 3.4 has no atomic_add of bfloat16")
def test_atomic_add_with_equal_pointers_and_a_mask() -> None:
    x = torch.tensor([1.5, 2.0, 0.25, 8.0], dtype=torch.bfloat16)
    out, old = torch.ones(2, dtype=torch.bfloat16), torch.empty(4, dtype=torch.bfloat16)
    accumulated[(1,)](x, out, old, 4)
    assert out.tolist() == [2.75, 3.0]
    assert old[:3].tolist() == [1.0, 1.0, 2.5]


@triton.jit
def multiplied(a, b, out, N: tl.constexpr):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    product = tl.dot(tl.load(a + rows * N + columns), tl.load(b + rows * N + columns))
    tl.store(out + rows * N + columns, product)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fnuz, torch.float8_e5m2])
def test_dot(dtype: Any) -> None:
    generator = torch.Generator(device="cuda").manual_seed(0)
    a, b = (torch.randn(16, 16, generator=generator).to(dtype) for _ in range(2))
    out = torch.empty(16, 16)
    multiplied[(1,)](a, b, out, 16)
    torch.testing.assert_close(out, a.float() @ b.float())


FP8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]


@pytest.mark.parametrize("dtype", FP8)
def test_cast_from_fp8_for_every_pattern(dtype: Any) -> None:
    x = torch.arange(256, dtype=torch.uint8).view(dtype)
    out = torch.empty(256)
    cast[(1,)](x, out, 256)
    assert same(out, x.float())


@pytest.mark.parametrize("dtype", FP8)
def test_cast_to_fp8_rounds_to_nearest_even(dtype: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1024, generator=generator) * torch.logspace(-8, 5, 1024, base=2)
    x = x.clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max)
    x[:256] = torch.arange(256, dtype=torch.uint8).view(dtype).float().nan_to_num(0, 0, 0)
    x[256:512] = (x[:256] + x[1:257]) / 2
    out = torch.empty(1024, dtype=dtype)
    cast[(1,)](x, out, 1024)
    assert same(out.float(), x.to(dtype).float())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_atomic_add_of_wider_floats(dtype: Any) -> None:
    x = torch.tensor([1.5, 2.0, 0.25, 8.0], dtype=dtype)
    out, old = torch.ones(2, dtype=dtype), torch.empty(4, dtype=dtype)
    accumulated[(1,)](x, out, old, 4)
    assert out.tolist() == [2.75, 3.0]


@triton.jit
def clamped(x, out, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(out + offsets, tl.clamp(tl.load(x + offsets), -1.0, 1.0))


def test_clamp_lets_no_nan_through() -> None:
    x = torch.tensor([float("nan"), 3.0, -3.0, 0.5])
    out = torch.empty(4)
    clamped[(1,)](x, out, 4)
    assert out.tolist() == [-1.0, 1.0, -1.0, 0.5]


@triton.jit
def shortened(x, out, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(out + offsets, tl.load(x + offsets).to(out.dtype.element_ty, fp_downcast_rounding="rtz"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounding_toward_zero(dtype: Any) -> None:
    x = torch.tensor([1.0 + 2**-7 - 2**-20, -(1.0 + 2**-7 - 2**-20), 1e30, -3.0])
    out = torch.empty(4, dtype=dtype)
    shortened[(1,)](x, out, 4)
    assert all(out.float().abs() <= x.abs())
    assert out[0] == (1.0 if dtype is torch.bfloat16 else 1.0 + 2**-7 - 2**-10)
    assert out[3] == -3.0


def test_the_old_fp8_format_is_refused_by_name() -> None:
    handle = triton.runtime.interpreter.TensorHandle(np.zeros(1, dtype=np.uint8), tl.dtype("fp8e4b15"))
    with pytest.raises(NotInterpretable, match=r"^smith: not interpretable: the fp8e4b15 format"):
        triton.runtime.interpreter.interpreter_builder.cast_impl(handle, tl.float32)
