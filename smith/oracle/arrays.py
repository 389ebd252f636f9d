"""Raw bytes of a tensor to numbers and back, for the element types that kernels have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

SIZES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1,
    "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "uint16": 2,
    "uint32": 4, "uint64": 8,
}  # fmt: skip
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-23}
"""One unit in the last place at 1. That of double precision is taken for single: kernels compute in no more."""
MOST_DIMENSIONS = 16

Numbers = Any
"""A numpy array."""


@dataclass(frozen=True)
class Array:
    """A tensor as it came out of a process. ``data`` has the length that shape and type ask for: it was checked."""

    shape: tuple[int, ...]
    dtype: str
    layout: str
    data: bytes

    @property
    def is_float(self) -> bool:
        return self.dtype in EPSILON

    def numbers(self) -> Numbers:
        """Its elements, flat: floating point in double precision, the rest as 64-bit whole numbers."""
        import numpy as np

        if self.dtype == "bfloat16":
            wide = np.frombuffer(self.data, "<u2").astype(np.uint32) << 16
            return wide.view(np.float32).astype(np.float64)
        if self.dtype in EPSILON:
            return np.frombuffer(self.data, f"<f{SIZES[self.dtype]}").astype(np.float64)
        if self.dtype.startswith("float8"):
            code = np.frombuffer(self.data, np.uint8).astype(np.int64)
            return np.where(code > 127, 127 - code, code)  # neighbours are one apart, as far as one sign goes
        kind = "u" if self.dtype.startswith("uint") or self.dtype == "bool" else "i"
        return np.frombuffer(self.data, f"<{kind}{SIZES[self.dtype]}").astype(np.int64)


def expected_bytes(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes of a contiguous tensor. Raises :class:`ValueError` for a type that is not known, or an odd shape."""
    if dtype not in SIZES or len(shape) > MOST_DIMENSIONS or any(n < 0 for n in shape):
        raise ValueError(f"a tensor of type {dtype[:40]!r} and shape {shape[:4]}")
    return math.prod(shape) * SIZES[dtype]


def encode(values: Numbers, dtype: str) -> bytes:
    """Numbers as the bytes of ``dtype``, rounded to nearest."""
    import numpy as np

    if dtype == "bfloat16":
        bits = values.astype(np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        special = ~np.isfinite(values)
        rounded = np.where(special, (bits >> 16) | np.where(np.isnan(values), 0x40, 0), rounded)
        return bytes(rounded.astype("<u2").tobytes())
    if dtype in EPSILON:
        with np.errstate(over="ignore"):
            return bytes(values.astype(f"<f{SIZES[dtype]}").tobytes())
    if dtype == "bool":
        return bytes(values.astype(np.uint8).tobytes())
    kind = "u" if dtype.startswith("uint") else "i"
    return bytes(values.astype(f"<{kind}{SIZES[dtype]}").tobytes())
