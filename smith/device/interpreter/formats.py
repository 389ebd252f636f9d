"""Narrow floating-point formats in numpy: bit patterns to float32 and back.

Triton's interpreter keeps bfloat16 as uint16 and the fp8 formats as uint8. Both directions are exact or correctly
rounded here: to nearest, ties to even, or toward zero. Values beyond the largest finite fp8 number saturate, as the
conversion instructions that Triton emits do; bfloat16 overflows to infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Bfloat16:
    """The upper half of float32."""

    name: str = "bf16"
    storage: type = np.uint16

    def decode(self, bits: Array) -> Array:
        """float32 values of the bit patterns ``bits``; exact."""
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)

    def encode(self, values: Array, *, toward_zero: bool = False) -> Array:
        """Bit patterns of the float32 ``values``."""
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        bias = np.uint32(0) if toward_zero else np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        rounded = ((bits + bias) >> np.uint32(16)).astype(np.uint16)
        return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).reshape(np.shape(values))


@dataclass(frozen=True)
class Float8:
    """One of the 8-bit formats, spelled out as a table of its 256 values."""

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    finite_codes: int
    """Positive codes below this one are finite; the rest of the positive ones are infinity and NaN."""
    nan: int
    infinity: int | None = None
    unsigned_zero: bool = False
    """True for the FNUZ formats: no negative zero, whose code is the only NaN."""
    storage: type = np.uint8

    @cached_property
    def magnitudes(self) -> Array:
        """Finite non-negative values, ascending: the index of a value is its code."""
        codes = np.arange(self.finite_codes)
        exponent, mantissa = codes >> self.mantissa_bits, codes & ((1 << self.mantissa_bits) - 1)
        fraction = mantissa / (1 << self.mantissa_bits)
        values = np.where(
            exponent == 0, fraction * 2.0 ** (1 - self.bias), (1 + fraction) * 2.0 ** (exponent - self.bias)
        )
        return values.astype(np.float32)

    @cached_property
    def table(self) -> Array:
        """The value of each of the 256 codes."""
        table = np.full(256, np.nan, dtype=np.float32)
        table[: self.finite_codes] = self.magnitudes
        table[128 : 128 + self.finite_codes] = -self.magnitudes
        if self.infinity is not None:
            table[self.infinity], table[128 + self.infinity] = np.inf, -np.inf
        if self.unsigned_zero:
            table[128] = np.nan
        return table

    @cached_property
    def midpoints(self) -> Array:
        """Halfway points between neighbours, in float64 and so exact."""
        wide = self.magnitudes.astype(np.float64)
        return (wide[1:] + wide[:-1]) / 2

    def decode(self, bits: Array) -> Array:
        """float32 values of the bit patterns ``bits``; exact."""
        return np.asarray(self.table[bits])

    def encode(self, values: Array, *, toward_zero: bool = False) -> Array:
        """Bit patterns of the float32 ``values``; beyond the largest finite number they saturate."""
        values = np.asarray(values, dtype=np.float32)
        size = np.abs(values).astype(np.float64)
        if toward_zero:
            code = np.searchsorted(self.magnitudes.astype(np.float64), size, side="right") - 1
        else:
            code = np.searchsorted(self.midpoints, size, side="left")
            last = len(self.midpoints) - 1
            tie = (code <= last) & (self.midpoints[np.minimum(code, last)] == size)
            code = code + (tie & (code % 2 == 1))
        negative = np.signbit(values) & ((code > 0) | (not self.unsigned_zero))
        bits = np.where(negative, code + 128, code)
        return np.where(np.isnan(values), self.nan, bits).astype(np.uint8)


Format = Bfloat16 | Float8

FORMATS: dict[str, Format] = {
    fmt.name: fmt
    for fmt in (
        Bfloat16(),
        Float8("fp8e5", 5, 2, 15, finite_codes=0x7C, nan=0x7F, infinity=0x7C),
        Float8("fp8e4nv", 4, 3, 7, finite_codes=0x7F, nan=0x7F),
        Float8("fp8e4b8", 4, 3, 8, finite_codes=0x80, nan=0x80, unsigned_zero=True),
        Float8("fp8e5b16", 5, 2, 16, finite_codes=0x80, nan=0x80, unsigned_zero=True),
    )
}
"""By Triton's name of the element type. ``fp8e4b15`` is absent: it is refused by name."""


def step_toward_zero(bits: Array, rounded: Array, exact: Array) -> Array:
    """Turn nearest rounding into truncation: where ``rounded`` lies beyond ``exact``, the code below it.

    ``bits`` are sign-magnitude patterns of the values ``rounded``; the code below has the smaller magnitude.
    """
    beyond = np.abs(rounded.astype(np.float64)) > np.abs(exact.astype(np.float64))
    return np.where(beyond, bits - bits.dtype.type(1), bits)
