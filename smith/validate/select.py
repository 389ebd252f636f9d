"""Which of the collected test ids are run: new and changed ones first, small ones first, large ones not forgotten."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CollectedId:
    """One collected test: its id, its function (``file::test``), and the product of its integer parameters."""

    id: str
    function: str
    size: int


def choose(
    collected: Sequence[CollectedId], *, new: Collection[str], changed: Collection[str], limit: int
) -> list[CollectedId]:
    """At most ``limit`` ids, in the order in which they are run (small before large).

    Ids that did not exist before come first, then ids of changed functions, then the rest. Inside each class the
    functions take turns, and of each function the ids are taken spread over its sizes (smallest, middle, quarter,
    three quarters, ...): a selection of only the smallest has been seen to miss the fault.
    """
    classes: tuple[list[CollectedId], ...] = ([], [], [])
    for item in collected:
        classes[0 if item.id in new else 1 if item.function in changed else 2].append(item)
    chosen: list[CollectedId] = []
    for members in classes:
        chosen += list(_take_turns(members))
    chosen = chosen[:limit]
    rank = {item.id: number for number, group in enumerate(classes) for item in group}
    return sorted(chosen, key=lambda item: (item.size, rank[item.id]))


def _take_turns(items: Iterable[CollectedId]) -> Iterator[CollectedId]:
    by_function: dict[str, list[CollectedId]] = {}
    for item in items:
        by_function.setdefault(item.function, []).append(item)
    queues = [_spread(sorted(group, key=lambda item: item.size)) for group in by_function.values()]
    while queues:
        for queue in queues:
            yield queue.pop(0)
        queues = [queue for queue in queues if queue]


def _spread(items: list[CollectedId]) -> list[CollectedId]:
    """First, middle, quarters, eighths, ...: a van der Corput order, so that any prefix covers the whole range."""
    count = len(items)
    order: list[int] = []
    seen: set[int] = set()
    denominator = 1
    while len(order) < count:
        for numerator in range(denominator):
            position = numerator * count // denominator
            if position not in seen:
                seen.add(position)
                order.append(position)
        denominator *= 2
    return [items[position] for position in order]
