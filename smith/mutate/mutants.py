"""Mutants of a solution: a sample of the places where its kernels can be made wrong.

The choice is a hash of the task and the place. The same task gives the same sample everywhere, and a larger sample
begins with the smaller one.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from smith.mine.rules import Rules
from smith.mutate import c_sites, python_sites
from smith.mutate.edits import Site, decoded, edited, encoded, line_of
from smith.mutate.same import parses, same_program

_OF_KERNELS = 3
"""So many sites in changed lines of kernels come before one in a changed line of other functions."""


@dataclass(frozen=True)
class Target:
    """A file of the solution: what it holds, the lines that the reference changed, and its kernels that it changed."""

    path: str
    data: bytes
    lines: frozenset[int]
    kernels: Collection[str]


@dataclass(frozen=True)
class Mutant:
    """A file made wrong in one place."""

    path: str
    line: int
    operator: str
    kernel: str
    data: bytes


@dataclass(frozen=True)
class _Place:
    target: Target
    text: str
    crlf: bool
    site: Site
    line: int
    rank: bytes


def mutants(seed: str, targets: Iterable[Target], rules: Rules, device: str, count: int) -> tuple[list[Mutant], int]:
    """At most ``count`` mutants, none of which is the same program as the solution or as another, and how many sites
    they were chosen from.

    Sites in changed lines of kernels come first, one in a changed line of another function between every few, the
    other lines of changed kernels last; within each the operators take turns.
    """
    places = [place for target in targets for place in _places(seed, target, rules, device)]
    found = islice(_distinct(_order(places), rules), count)
    return list(found), len(places)


def _places(seed: str, target: Target, rules: Rules, device: str) -> Iterator[_Place]:
    read = decoded(target.data)
    if read is None:
        return
    text, crlf = read
    if target.path.lower().endswith(".py"):
        sites = python_sites.sites(text, rules, target.kernels, target.lines, device)
    else:
        sites = c_sites.sites(text, target.path, rules, target.kernels, target.lines)
    for site in sites:
        line = line_of(text, site.begin)
        if site.kernel or line in target.lines:
            name = f"{seed}\0{target.path}\0{site.operator}\0{site.edits}"
            yield _Place(target, text, crlf, site, line, hashlib.sha256(name.encode()).digest())


def _order(places: Iterable[_Place]) -> Iterator[_Place]:
    tiers: tuple[list[_Place], ...] = ([], [], [])
    for place in places:
        changed = place.line in place.target.lines
        tiers[2 if not changed else 0 if place.site.kernel else 1].append(place)
    kernels, others = _take_turns(tiers[0]), _take_turns(tiers[1])
    while some := [*islice(kernels, _OF_KERNELS), *islice(others, 1)]:
        yield from some
    yield from _take_turns(tiers[2])


def _take_turns(places: Iterable[_Place]) -> Iterator[_Place]:
    """By their rank, one of each operator after the other."""
    by_operator: defaultdict[str, list[_Place]] = defaultdict(list)
    for place in sorted(places, key=lambda one: one.rank):
        by_operator[place.site.operator].append(place)
    longest = max(map(len, by_operator.values()), default=0)
    for turn in range(longest):
        yield from (queue[turn] for queue in by_operator.values() if turn < len(queue))


def _distinct(places: Iterable[_Place], rules: Rules) -> Iterator[Mutant]:
    """Mutants that parse and are neither the solution nor each other."""
    seen: set[tuple[str, bytes]] = set()
    for place in places:
        target, site = place.target, place.site
        data = encoded(edited(place.text, site.edits), place.crlf)
        if (target.path, data) in seen or not parses(target.path, data):
            continue
        seen.add((target.path, data))
        if not same_program(target.path, target.data, data, rules.source_suffixes):
            yield Mutant(target.path, place.line, site.operator, site.kernel, data)
