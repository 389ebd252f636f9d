"""The sums that a ledger keeps beside its entries, so that a reservation reads a few rows and not the whole history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import sqlite_utils

from smith.ledger.amounts import RESOURCES, Amounts, Limits
from smith.ledger.holds import Balance, Hold, State

_N = len(RESOURCES)


def _named(prefix: str) -> list[str]:
    return [f"{prefix}_{name}" for name in RESOURCES]


_SCOPE = f"SELECT scope, limited, overruns, {', '.join(_named('limit') + _named('spent') + _named('held'))} FROM scopes"
_HOLD = f"SELECT key, scope, state, at_ms, {', '.join(_named('ceiling') + _named('used'))} FROM holds"
_ADD = (
    "UPDATE scopes SET overruns = overruns + ?, "
    + ", ".join(f"{c} = {c} + ?" for c in _named("spent") + _named("held"))
    + " WHERE scope = ?"
)
_LIMIT = f"UPDATE scopes SET limited = 1, {', '.join(f'{c} = ?' for c in _named('limit'))} WHERE scope = ?"
_NEW_HOLD = (
    f"INSERT INTO holds (key, scope, state, at_ms, {', '.join(_named('ceiling'))}) VALUES ({', '.join('?' * (4 + _N))})"
)
_END_HOLD = f"UPDATE holds SET state = ?, {', '.join(f'{c} = ?' for c in _named('used'))} WHERE key = ?"


class Row(NamedTuple):
    """One scope, as numbers in the order of ``RESOURCES``: a reservation looks at several, and must be quick."""

    scope: str
    limited: bool
    overruns: int
    limit: tuple[int | None, ...]
    spent: tuple[int, ...]
    held: tuple[int, ...]

    @property
    def free(self) -> tuple[int | None, ...]:
        """Limit less spent and held; below zero after an overrun, ``None`` without limit."""
        rows = zip(self.limit, self.spent, self.held, strict=True)
        return tuple(None if limit is None else limit - spent - held for limit, spent, held in rows)

    def balance(self) -> Balance:
        """The same for others."""
        return Balance(
            scope=self.scope,
            overruns=self.overruns,
            limited=self.limited,
            limit=Limits.of(self.limit),
            spent=Amounts.of(self.spent),
            held=Amounts.of(self.held),
        )


class Tables:
    """``scopes`` and ``holds`` of one database; the caller holds the write lock where something is written."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def rows(self, path: Sequence[str]) -> list[Row]:
        """How these scopes stand, in this order; all zero for one that was never named."""
        marks = ", ".join("?" * len(path))
        found = self._db.conn.execute(f"{_SCOPE} WHERE scope IN ({marks})", list(path)).fetchall()
        known = {row.scope: row for row in map(_row, found)}
        return [known.get(scope) or Row(scope, False, 0, (None,) * _N, (0,) * _N, (0,) * _N) for scope in path]

    def all(self, below: str | None = None) -> Iterator[Row]:
        """Every scope, or ``below`` and every one under it, parents first."""
        where, values = _under(below)
        # '/' sorts before every letter and digit of a name, but after '-' and '.': by parts is the order of the tree.
        rows = self._db.conn.execute(f"{_SCOPE}{where}", values).fetchall()
        yield from (_row(row) for row in sorted(rows, key=lambda row: str(row[0]).split("/")))

    def name(self, path: Sequence[str]) -> None:
        """Make the rows of these scopes where they are missing."""
        self._db.conn.executemany("INSERT OR IGNORE INTO scopes (scope) VALUES (?)", [(s,) for s in path])

    def limit(self, scope: str, limit: Limits) -> None:
        """Set a scope's own limit."""
        self._db.conn.execute(_LIMIT, [*limit.values, scope])

    def add(self, path: Sequence[str], spent: Sequence[int], held: Sequence[int], overruns: int = 0) -> None:
        """Add to what is spent, held and overrun in all these scopes; the numbers may be negative."""
        self._db.conn.executemany(_ADD, [(overruns, *spent, *held, scope) for scope in path])

    def hold(self, key: str) -> Hold | None:
        """The hold with this key."""
        row = self._db.conn.execute(f"{_HOLD} WHERE key = ?", [key]).fetchone()
        return None if row is None else _hold(row)

    def holds(self, below: str | None = None, states: Sequence[State] = tuple(State)) -> Iterator[Hold]:
        """Holds in these states, oldest first; of ``below`` and every scope under it where that is given."""
        where, values = _under(below)
        marks = ", ".join("?" * len(states))
        asking = f"{_HOLD}{where or ' WHERE true'} AND state IN ({marks}) ORDER BY at_ms, key"
        yield from map(_hold, self._db.conn.execute(asking, [*values, *(s.value for s in states)]).fetchall())

    def open(self, hold: Hold) -> None:
        """Write a new hold."""
        values = [hold.key, hold.scope, hold.state.value, hold.at_ms, *hold.ceiling.values]
        self._db.conn.execute(_NEW_HOLD, values)

    def end(self, key: str, state: State, used: Amounts | None) -> None:
        """Write what has become of a hold."""
        self._db.conn.execute(_END_HOLD, [state.value, *(used.values if used else (None,) * _N), key])


def _under(below: str | None) -> tuple[str, list[str]]:
    """A condition for one scope and all under it: by exact prefix up to a slash, never by LIKE."""
    if below is None:
        return "", []
    # '0' is the character after '/': everything from 'a/' up to 'a0' starts with 'a/'.
    return " WHERE (scope = ? OR (scope >= ? AND scope < ?))", [below, f"{below}/", f"{below}0"]


def _row(row: tuple[Any, ...]) -> Row:
    numbers = row[3:]
    return Row(row[0], bool(row[1]), row[2], numbers[:_N], numbers[_N : 2 * _N], numbers[2 * _N :])


def _hold(row: Sequence[Any]) -> Hold:
    used = row[4 + _N :]
    return Hold(
        key=row[0],
        scope=row[1],
        state=State(row[2]),
        at_ms=row[3],
        ceiling=Amounts.of(row[4 : 4 + _N]),
        used=None if used[0] is None else Amounts.of(used),
    )
