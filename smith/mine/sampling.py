"""Choosing among candidates: stratified, reproducible, and never on both sides of a held-out split.

Everything random is a hash of the seed and a name. So a choice does not depend on the order of what is offered, and a
lineage is on the same side today and when ten more have landed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from smith.errors import BadInput
from smith.records.candidate import Candidate
from smith.records.signals import Signals

Side = Literal["train", "held_out"]
Stratum = tuple[str, ...]

SIZES: tuple[tuple[int, str], ...] = ((10, "xs"), (50, "s"), (200, "m"), (800, "l"))
"""Most changed lines of each size class; above the last it is ``xl``."""
DEFAULT_BY = ("operator", "language", "kind", "size", "year")
NONE = "none"
"""Stands where a candidate has nothing of a kind, such as no operator."""


@dataclass(frozen=True)
class Entry:
    """A candidate with what sampling looks at."""

    candidate: Candidate
    signals: Signals
    lineage: str
    """``owner/name#N``, from :func:`smith.mine.lineage.group`."""

    @property
    def id(self) -> str:
        return f"{self.candidate.repo}#{self.candidate.pr}"


@dataclass(frozen=True)
class Sample:
    """What was chosen, each side by repository and number."""

    train: tuple[Entry, ...] = ()
    held_out: tuple[Entry, ...] = ()


_KEYS: Mapping[str, Callable[[Entry], str]] = {
    "operator": lambda entry: next(iter(entry.signals.operators), NONE),
    "language": lambda entry: "+".join(entry.candidate.languages) or NONE,
    "kind": lambda entry: entry.candidate.kind.value,
    "size": lambda entry: size_class(entry.signals.lines_added + entry.signals.lines_removed),
    "year": lambda entry: entry.candidate.merged_at[:4],
    "device": lambda entry: next(iter(entry.signals.devices), NONE),
    "repo": lambda entry: entry.candidate.repo,
}


def size_class(lines: int) -> str:
    """``xs``, ``s``, ``m``, ``l`` or ``xl``, by the number of changed lines."""
    return next((name for most, name in SIZES if lines <= most), "xl")


def check_by(by: Iterable[str]) -> None:
    """Raise :class:`~smith.errors.BadInput` for a name by which nothing can be stratified."""
    for name in by:
        if name not in _KEYS:
            raise BadInput(f"candidates cannot be sampled by {name!r}", hint=f"one of: {', '.join(_KEYS)}")


def choose(
    entries: Iterable[Entry],
    n: int,
    *,
    by: Sequence[str] = DEFAULT_BY,
    seed: int | str = 0,
    holdout: float = 0.0,
) -> Sample:
    """A stratified sample of ``n`` entries, or of all where there are fewer.

    Every stratum (one value of each of ``by``) has a share in proportion to its size, and one at least while ``n``
    allows; what is left over goes to the largest remainders (Hamilton's method). Two of one lineage are chosen only
    where ``n`` is more than the number of lineages. With ``holdout`` that share of ``n``, rounded, comes from the
    held-out side of :func:`split` and the rest from the other; a side that is too small gives all it has, and the
    sample is smaller.

    Raises :class:`~smith.errors.BadInput` for a negative ``n``, an unknown name in ``by`` or a share outside [0, 1).
    """
    if n < 0:
        raise BadInput(f"a sample of {n} is asked for", hint="give a number that is not negative")
    check_by(by)
    unique = {entry.id: entry for entry in entries}
    sides = split((entry.lineage for entry in unique.values()), holdout, seed)
    held_out = [entry for entry in unique.values() if sides[entry.lineage] == "held_out"]
    train = [entry for entry in unique.values() if sides[entry.lineage] == "train"]
    share = round(n * holdout)
    return Sample(_choose(train, n - share, by, seed), _choose(held_out, share, by, seed))


def split(lineages: Iterable[str], share: float, seed: int | str) -> dict[str, Side]:
    """The side of each lineage: ``held_out`` for about ``share`` of them. A lineage's side never depends on the others.

    Raises :class:`~smith.errors.BadInput` for a share outside [0, 1).
    """
    if not 0 <= share < 1:
        raise BadInput(f"{share} is no share to hold out", hint="give a number from 0 up to, not including, 1")
    return {name: "held_out" if _fraction("split", seed, name) < share else "train" for name in lineages}


def _choose(entries: Collection[Entry], n: int, by: Sequence[str], seed: int | str) -> tuple[Entry, ...]:
    chosen: list[Entry] = []
    for round_ in _rounds(entries, seed):
        left = n - len(chosen)
        chosen += round_ if len(round_) <= left else _stratified(round_, left, by, seed)
    return tuple(sorted(chosen, key=_by_number))


def _rounds(entries: Collection[Entry], seed: int | str) -> list[list[Entry]]:
    """First one of each lineage, then a second one of each that has it, and so on."""
    of: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: _order(seed, entry)):
        of.setdefault(entry.lineage, []).append(entry)
    longest = max((len(group) for group in of.values()), default=0)
    return [[group[at] for group in of.values() if at < len(group)] for at in range(longest)]


def _stratified(entries: Sequence[Entry], n: int, by: Sequence[str], seed: int | str) -> list[Entry]:
    strata: dict[Stratum, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: _order(seed, entry)):
        strata.setdefault(tuple(_KEYS[name](entry) for name in by), []).append(entry)
    seats = allot({stratum: len(group) for stratum, group in strata.items()}, n, seed)
    return [entry for stratum, group in strata.items() for entry in group[: seats[stratum]]]


def allot(sizes: Mapping[Stratum, int], n: int, seed: int | str = 0) -> dict[Stratum, int]:
    """How many of each stratum a sample of ``n`` takes, given the strata's ``sizes`` (all positive).

    Proportional with largest remainders; where ``n`` reaches, each stratum has one at least. Equal remainders are
    decided by hash. Never more than a stratum's size; the sum is the smaller of ``n`` and the sum of ``sizes``.
    """
    n = min(n, sum(sizes.values()))
    seats = dict.fromkeys(sizes, 0)
    rest = dict(sizes)
    if n >= len(sizes):
        # Strata below one whole seat get it; that makes the share of the others smaller, so it is asked again.
        while small := [s for s, size in rest.items() if size * n < sum(rest.values())]:
            for stratum in small:
                seats[stratum] = 1
                n -= 1
                del rest[stratum]
    total = sum(rest.values())
    if not total:
        return seats
    for stratum, size in rest.items():
        seats[stratum] = size * n // total
    left = n - sum(seats[stratum] for stratum in rest)
    by_remainder = sorted(rest, key=lambda s: (-(rest[s] * n % total), _fraction("tie", seed, "\0".join(s))))
    for stratum in by_remainder[:left]:
        seats[stratum] += 1
    return seats


def _order(seed: int | str, entry: Entry) -> tuple[float, str]:
    return _fraction("order", seed, entry.id), entry.id


def _by_number(entry: Entry) -> tuple[str, int]:
    return entry.candidate.repo, entry.candidate.pr


def _fraction(purpose: str, seed: int | str, name: str) -> float:
    """A number in [0, 1) that depends on nothing but the words given."""
    digest = hashlib.sha256("\0".join((purpose, str(seed), name)).encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:6]) / (1 << 48)
