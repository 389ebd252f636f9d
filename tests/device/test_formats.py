"""Narrow formats against torch, without any patch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smith.device.interpreter.formats import FORMATS, Bfloat16, step_toward_zero

TORCH = {
    "bf16": torch.bfloat16,
    "fp8e5": torch.float8_e5m2,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_decoding_every_pattern(name: str) -> None:
    fmt = FORMATS[name]
    patterns = np.arange(2 ** (8 * np.dtype(fmt.storage).itemsize), dtype=fmt.storage)
    expected = torch.from_numpy(patterns.copy()).view(TORCH[name]).float().numpy()
    np.testing.assert_array_equal(fmt.decode(patterns), expected)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_encoding_what_was_decoded_is_the_identity(name: str) -> None:
    fmt = FORMATS[name]
    values = fmt.decode(np.arange(2 ** (8 * np.dtype(fmt.storage).itemsize), dtype=fmt.storage))
    for toward_zero in (False, True):
        again = fmt.decode(fmt.encode(values, toward_zero=toward_zero))
        finite = ~np.isinf(values) | (name == "bf16")
        np.testing.assert_array_equal(again[finite], values[finite])


@pytest.mark.parametrize("name", sorted(FORMATS))
@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_encoding_rounds_as_torch_does(name: str, value: float) -> None:
    limit = torch.finfo(TORCH[name]).max
    array = np.array([min(max(value, -limit), limit)], dtype=np.float32)
    expected = torch.from_numpy(array).to(TORCH[name]).float().numpy()
    np.testing.assert_array_equal(FORMATS[name].decode(FORMATS[name].encode(array)), expected)


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"bf16"}))
def test_fp8_saturates(name: str) -> None:
    fmt, limit = FORMATS[name], torch.finfo(TORCH[name]).max
    far = np.array([1e9, -1e9, np.nan], dtype=np.float32)
    np.testing.assert_array_equal(fmt.decode(fmt.encode(far)), np.array([limit, -limit, np.nan], dtype=np.float32))


@given(value=st.floats(width=32, allow_nan=False))
def test_truncation_never_grows(value: float) -> None:
    exact = np.array([value], dtype=np.float32)
    short = Bfloat16().decode(Bfloat16().encode(exact, toward_zero=True))
    assert abs(short[0]) <= abs(exact[0])
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float16)
    half = step_toward_zero(rounded.view(np.uint16), rounded, exact).view(np.float16)
    assert abs(float(half[0])) <= abs(value)
