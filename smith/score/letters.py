"""Which of many cannot be told apart, as a compact display of letters (Piepho 2004, by insertion and absorption)."""

from __future__ import annotations

from collections.abc import Iterable


def letters(count: int, told: Iterable[tuple[int, int]]) -> list[str]:
    """Letters for each of ``count`` things: two share one exactly where the pair is not in ``told`` apart."""
    groups: list[frozenset[int]] = [frozenset(range(count))] if count else []
    for one, other in told:
        parted: list[frozenset[int]] = []
        for group in groups:
            parted += [group - {one}, group - {other}] if {one, other} <= group else [group]
        parted = sorted(set(parted), key=len, reverse=True)
        groups = []
        for group in parted:  # the larger first: one that lies within another says nothing more
            if not any(group < kept for kept in groups):
                groups.append(group)
    groups.sort(key=sorted)
    return ["".join(_letter(n) for n, group in enumerate(groups) if thing in group) for thing in range(count)]


def _letter(number: int) -> str:
    """a to z, then two signs each: a1 to z1, and so on."""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")
