"""How many lines of a file changed, cheaply."""

from __future__ import annotations

from itertools import filterfalse
from typing import AnyStr


def changed_lines(before: bytes, after: bytes) -> tuple[int, int]:
    """Lines whose text only ``after`` has, and only ``before``; what moved or was repeated counts on neither side.

    The common beginning and end, which are most of a file, are never taken apart.
    """
    if not before or not after:
        return after.count(b"\n"), before.count(b"\n")
    start = common_start(before, after)
    start = before.rfind(b"\n", 0, start) + 1
    end = _common_end(before, after, min(len(before), len(after)) - start)
    # Whole lines only: the end begins behind a line's end.
    line_end = before.find(b"\n", len(before) - end)
    end = len(before) - line_end - 1 if line_end >= 0 else 0
    old, new = before[start : len(before) - end].splitlines(), after[start : len(after) - end].splitlines()
    before_lines, after_lines = set(old), set(new)
    return (
        len(list(filterfalse(before_lines.__contains__, new))),
        len(list(filterfalse(after_lines.__contains__, old))),
    )


def common_start(one: AnyStr, other: AnyStr) -> int:
    """Length of the common beginning, by halving: comparing slices costs next to nothing."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: bytes, other: bytes, most: int) -> int:
    """Length of the common end, in the same way, but no more than ``most``."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
