"""The proof of a ledger: its entries are read from the first on, every rule is applied anew, and the sums compared."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from smith.errors import BadInput
from smith.ledger.amounts import MOST, RESOURCES, TIMES, shown
from smith.ledger.chain import FIRST, Entry
from smith.ledger.scopes import path_of
from smith.ledger.tables import Tables

Numbers = tuple[int | None, ...]
_N = len(RESOURCES)
_AFTER = {
    "settle": {"open"},
    "release": {"open"},
    "uncertain": {"open"},
    "reconcile": {"uncertain", "overrun"},
}


def check(entries: Iterable[Entry], tables: Tables, head: tuple[int, str] | None) -> list[str]:
    """Every fault, in one line each: of the chain, of the rules, of the sums kept beside the entries."""
    replay = Replay(head)
    for entry in entries:
        replay.read(entry)
    faults = replay.faults
    if head is not None and not replay.met_head:
        faults.append(f"entry {head[0]}: is not there with the digest {head[1][:12]}...")
    return [*faults, *_compare_scopes(replay, tables), *_compare_holds(replay, tables)]


@dataclass
class _Scope:
    limit: Numbers | None = None
    spent: list[int] = field(default_factory=lambda: [0] * _N)
    held: list[int] = field(default_factory=lambda: [0] * _N)
    overruns: int = 0


@dataclass
class _Hold:
    scope: str
    ceiling: tuple[int, ...]
    at_ms: int
    state: str = "open"
    used: tuple[int, ...] | None = None


class Replay:
    """What follows from the entries read so far, and what was wrong with them."""

    def __init__(self, head: tuple[int, str] | None = None) -> None:
        self.scopes: dict[str, _Scope] = defaultdict(_Scope)
        self.holds: dict[str, _Hold] = {}
        self.faults: list[str] = []
        self.met_head = head == (0, FIRST)
        self._head = head
        self._last = (0, FIRST)

    def read(self, entry: Entry) -> None:
        """Take one entry."""
        number, digest = self._last
        if entry.seq != number + 1:
            self._fault(entry, f"follows entry {number}: entries are missing")
        if entry.previous != digest:
            self._fault(entry, "does not follow the entry before it: the chain is broken")
        if entry.digest != entry.seal():
            self._fault(entry, "was changed: its digest is not that of what it says")
        self._last = (entry.seq, entry.digest)
        self.met_head |= self._last == self._head
        try:
            self._apply(entry, path_of(entry.scope), json.loads(entry.detail))
        except (BadInput, ValueError, KeyError, TypeError, AttributeError) as error:
            self._fault(entry, f"makes no sense: {error}")

    def _apply(self, entry: Entry, path: Sequence[str], detail: dict[str, Any]) -> None:
        if entry.kind in ("limit", "raise"):
            self._limit(entry, path, detail)
        elif entry.kind == "reserve":
            self._reserve(entry, path)
        else:
            self._end(entry, path, detail)

    def _limit(self, entry: Entry, path: Sequence[str], detail: dict[str, Any]) -> None:
        for name in path:
            self.scopes[name]  # named, if with nothing in it
        scope = self.scopes[entry.scope]
        if not (detail["who"] and detail["why"]):
            self._fault(entry, "nobody stands for it")
        if entry.kind == "limit":
            if scope.limit is not None:
                self._fault(entry, f"{entry.scope} had a limit already")
            sums = zip(scope.spent, scope.held, entry.amounts, strict=True)
            if any(most is not None and spent + held > most for spent, held, most in sums):
                self._fault(entry, f"{entry.scope} had more spent and held than its first limit")
        elif scope.limit is None or tuple(detail["expected"][name] for name in RESOURCES) != scope.limit:
            self._fault(entry, f"{entry.scope} had another limit than was expected")
        elif any(a is not None and (b is None or a < b) for a, b in zip(entry.amounts, scope.limit, strict=True)):
            self._fault(entry, f"the limit of {entry.scope} was lowered")
        scope.limit = entry.amounts

    def _reserve(self, entry: Entry, path: Sequence[str]) -> None:
        ceiling = _whole(entry.amounts)
        if entry.hold is None or entry.hold in self.holds:
            self._fault(entry, f"hold {entry.hold} was reserved twice")
            return
        if all(self.scopes[scope].limit is None for scope in path):
            self._fault(entry, f"nobody said what {entry.scope} may spend")
        for name in path:
            scope = self.scopes[name]
            if scope.overruns:
                self._fault(entry, f"was granted while {name} had an overrun")
            for n, (resource, most) in enumerate(zip(RESOURCES, scope.limit or (None,) * _N, strict=True)):
                free = None if most is None else most - scope.spent[n] - scope.held[n]
                if free is not None and (ceiling[n] > max(0, free) or (resource in TIMES and free <= 0)):
                    asked = shown(resource, ceiling[n])
                    self._fault(entry, f"was granted {asked} over the limit of {name} ({resource})")
        self.holds[entry.hold] = _Hold(entry.scope, ceiling, entry.at_ms)
        self._add(path, held=ceiling)

    def _end(self, entry: Entry, path: Sequence[str], detail: dict[str, Any]) -> None:
        hold = self.holds.get(entry.hold or "")
        if hold is None or hold.scope != entry.scope:
            self._fault(entry, f"{entry.kind} of hold {entry.hold}, which {entry.scope} does not have")
            return
        if hold.state not in _AFTER[entry.kind]:
            self._fault(entry, f"{entry.kind} of hold {entry.hold}, which was {hold.state}")
        if entry.kind == "uncertain":
            hold.state = "uncertain"
            return
        if entry.kind == "reconcile" and not (detail["who"] and detail["why"]):
            self._fault(entry, "nobody stands for it")
        used = None if entry.kind == "release" else _whole(entry.amounts)
        before, was_over = hold.used or (0,) * _N, hold.state == "overrun"
        beyond = {n for n, a, b in zip(RESOURCES, used or hold.ceiling, hold.ceiling, strict=True) if a > b}
        over = entry.kind == "settle" and bool(beyond - TIMES)
        self._add(
            path,
            spent=tuple(a - b for a, b in zip(used or (0,) * _N, before, strict=True)),
            held=(0,) * _N if was_over else tuple(-c for c in hold.ceiling),
            overruns=over - was_over,
        )
        hold.used = used
        hold.state = "overrun" if over else "released" if used is None else "settled"

    def _add(
        self, path: Sequence[str], *, spent: Sequence[int] = (0,) * _N, held: Sequence[int], overruns: int = 0
    ) -> None:
        for name in path:
            scope = self.scopes[name]
            scope.overruns += overruns
            for n in range(_N):
                scope.spent[n] += spent[n]
                scope.held[n] += held[n]

    def _fault(self, entry: Entry, text: str) -> None:
        self.faults.append(f"entry {entry.seq}: {text}")


def _whole(amounts: Numbers) -> tuple[int, ...]:
    if any(a is None or not 0 <= a <= MOST for a in amounts):
        raise ValueError(f"amounts {amounts}")
    return tuple(a for a in amounts if a is not None)


def _compare_scopes(replay: Replay, tables: Tables) -> list[str]:
    none: Numbers = (None,) * _N
    kept = {row.scope: (row.limit, row.spent, row.held, row.overruns) for row in tables.all()}
    right = {name: (s.limit or none, tuple(s.spent), tuple(s.held), s.overruns) for name, s in replay.scopes.items()}
    parts = ("limit", "spent", "held", "overruns")
    faults = []
    for name in sorted(kept.keys() | right.keys()):
        a, b = kept.get(name), right.get(name)
        if a is None or b is None:
            faults.append(f"scope {name}: {'is missing' if a is None else 'has no entries'}")
            continue
        faults += [
            f"scope {name}: {p}: {x} is kept, {y} follows" for p, x, y in zip(parts, a, b, strict=True) if x != y
        ]
    return faults


def _compare_holds(replay: Replay, tables: Tables) -> list[str]:
    kept = {
        h.key: (h.scope, h.ceiling.values, h.at_ms, h.state.value, h.used.values if h.used else None)
        for h in tables.holds()
    }
    right = {key: (h.scope, h.ceiling, h.at_ms, h.state, h.used) for key, h in replay.holds.items()}
    differing = [key for key in sorted(kept.keys() | right.keys()) if kept.get(key) != right.get(key)]
    return [f"hold {key}: {kept.get(key)} is kept, {right.get(key)} follows" for key in differing]
