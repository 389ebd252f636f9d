"""Timing cases of the native int8 matrix-vector product."""

from collections.abc import Callable
from functools import partial

import torch
from minikernels.native.int8_matvec import int8_matvec  # type: ignore[import-not-found]

SIZES = [(512, 2048), (1024, 1024), (2048, 2048), (1000, 3001)]


def _case(rows: int, cols: int) -> Callable[[], object]:
    q = torch.randint(-127, 128, (rows, cols), dtype=torch.int8)
    scale = torch.rand(rows) / 127
    x = torch.randn(cols)
    return lambda: int8_matvec(q, scale, x)


def cases() -> list[tuple[str, Callable[[], Callable[[], object]]]]:
    """Return (name, make); ``make()`` builds the inputs and returns one timed call."""
    return [(f"{rows}x{cols}", partial(_case, rows, cols)) for rows, cols in SIZES]
