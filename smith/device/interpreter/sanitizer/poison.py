"""Memory that nobody has written, told by what lies in it.

Every fresh allocation of ``torch.empty`` and its kin is filled with a pattern that depends on the address. Memory that
still holds the pattern at its own address was never written: whichever way a write came (torch, numpy, a C++ extension,
a kernel), it would have replaced the pattern. So no host operation has to be intercepted, and none can be missed.

Every half word of the pattern is a NaN with an odd payload in float16 and bfloat16, every word one in float32 and every
double word one in float64; as integers they are huge. Single bytes and small integers can hold anything, so for these
the whole aligned word around them must be untouched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

Array = Any

PERIOD = 8 * 4093
"""Bytes after which the pattern repeats: a copy of unwritten memory rarely lies where it matches."""
LIMIT = 256 << 20
"""At most so many bytes of one allocation are filled: larger ones are mostly meant to stay untouched by the host."""
KEPT = 100_000
"""At most so many allocations are remembered."""

FUNCTIONS = ("empty", "empty_like", "empty_strided", "empty_permuted")
METHODS = ("new_empty", "new_empty_strided")


def _pattern() -> Array:
    draw = np.random.Generator(np.random.PCG64(0x5A17)).choice
    # Not in it: 0x7FC0 and 0x7FFF, the NaNs that computations make.
    low = np.array([*range(0x81, 0xC0), *range(0xC1, 0xFF)], dtype=np.uint16)
    halves = np.uint16(0x7F00) | draw(low, PERIOD // 2)
    halves[3::4] = np.uint16(0x7F00) | draw(low[low >= 0xF1], PERIOD // 8)
    return halves.astype("<u2").view(np.uint8)


_TILE = _pattern()
_TILES = np.tile(_TILE, 64)
_BY_SIZE = {size: _TILE.view(np.dtype(f"u{size}")) for size in (2, 4, 8)}

_fresh: dict[int, int] = {}
"""Address to bytes of allocations that were filled, and may still hold the pattern."""


class _Raw:
    def __init__(self, start: int, size: int) -> None:
        self.__array_interface__ = {"data": (start, False), "shape": (size,), "typestr": "|u1", "version": 3}


def memory(start: int, size: int) -> Array:
    """The bytes at an address as an array that shares them; the caller keeps them alive."""
    return np.asarray(_Raw(start, size)) if size else np.zeros(0, dtype=np.uint8)


def _stretches(start: int, size: int) -> Iterator[tuple[int, Array]]:
    position = 0
    while position < size:
        offset = (start + position) % PERIOD
        part = _TILES[offset : offset + size - position]
        yield position, part
        position += len(part)


def fill(start: int, size: int) -> None:
    """Put the pattern into memory, and remember where."""
    size = min(size, LIMIT)
    if not size:
        return
    target = memory(start, size)
    for position, part in _stretches(start, size):
        target[position : position + len(part)] = part
    _fresh.pop(start, None)
    _fresh[start] = size
    if len(_fresh) > KEPT:
        del _fresh[next(iter(_fresh))]


def holds(start: int, size: int) -> bool:
    """Whether an allocation was filled and any half word of it is still as it was."""
    if start not in _fresh:
        return False
    size = min(size, _fresh[start]) & ~1
    target = memory(start, size)
    for position, part in _stretches(start, size):
        piece = target[position : position + len(part)]
        if (piece.view(np.uint16) == part[: len(piece)].view(np.uint16)).any():
            return True
    del _fresh[start]
    return False


def unwritten(content: Array, start: int, offsets: Array, size: int, floating: bool) -> Array:
    """Which elements of ``size`` bytes at ``offsets`` were never written; ``content`` lies from ``start`` on."""
    granule = min(size, 8) if size >= 4 or (floating and size == 2) else 4
    pattern = _BY_SIZE[granule]
    whole = len(content) // granule
    if start % granule or not whole:
        return np.zeros(offsets.shape, dtype=bool)
    index = offsets // np.uint64(granule)
    inside = index < whole
    index = np.where(inside, index, 0)
    expected = pattern[(index + np.uint64(start // granule)) % np.uint64(len(pattern))]
    return inside & (content[: whole * granule].view(pattern.dtype)[index] == expected)


def _fill_result(result: Any) -> None:
    if type(result) is not torch.Tensor or result.layout is not torch.strided or result.device.type != "cpu":
        return
    try:
        storage = result.untyped_storage()
        fill(storage.data_ptr(), storage.nbytes())
    except (RuntimeError, NotImplementedError):
        return  # inside a functional transformation a tensor has no memory of its own


def _filling(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def filled(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if kwargs.get("out") is None:
            _fill_result(result)
        return result

    return filled


def install() -> None:
    """Patch the functions that give memory which nobody has written."""
    for name in FUNCTIONS:
        if hasattr(torch, name):
            setattr(torch, name, _filling(getattr(torch, name)))
    for name in METHODS:
        setattr(torch.Tensor, name, _filling(getattr(torch.Tensor, name)))
