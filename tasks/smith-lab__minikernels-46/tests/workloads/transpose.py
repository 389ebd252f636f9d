"""Timing cases of the native transpose."""

from collections.abc import Callable
from functools import partial

import torch
from minikernels.native.transpose import transpose  # type: ignore[import-not-found]

SIZES = [(512, 512), (1024, 512), (1024, 1024), (2048, 512)]


def _case(rows: int, cols: int) -> Callable[[], object]:
    x = torch.randn(rows, cols)
    return lambda: transpose(x)


def cases() -> list[tuple[str, Callable[[], Callable[[], object]]]]:
    """Return (name, make); ``make()`` builds the inputs and returns one timed call."""
    return [(f"{rows}x{cols}", partial(_case, rows, cols)) for rows, cols in SIZES]
