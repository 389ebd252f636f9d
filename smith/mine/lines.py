"""How many lines of a file changed, cheaply."""

from __future__ import annotations


def changed_lines(before: bytes, after: bytes) -> tuple[int, int]:
    """Lines whose text only ``after`` has, and only ``before``; what moved or was repeated counts on neither side.

    The common beginning and end, which are most of a file, are never taken apart.
    """
    if not before or not after:
        return after.count(b"\n"), before.count(b"\n")
    start = _common(before, after)
    start = before.rfind(b"\n", 0, start) + 1
    rest, other = before[start:], after[start:]
    end = _common(rest[::-1], other[::-1])
    # Whole lines only: the end begins behind a line's end.
    end -= rest[len(rest) - end :].find(b"\n") + 1 if b"\n" in rest[len(rest) - end :] else end
    old, new = rest[: len(rest) - end].splitlines(), other[: len(other) - end].splitlines()
    before_lines, after_lines = set(old), set(new)
    return (
        len([line for line in new if line not in before_lines]),
        len([line for line in old if line not in after_lines]),
    )


def _common(one: bytes, other: bytes) -> int:
    """Length of the common beginning, by halving: comparing slices costs next to nothing."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
