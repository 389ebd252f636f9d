"""The ledger: nothing is spent that was not reserved first, and nothing is reserved that a limit does not allow.

Every call is one ``BEGIN IMMEDIATE`` transaction: one entry, and the sums that follow from it. So a kill at any instant
leaves a call done or not done, and many processes may share one file. What allows spending, or was decided by somebody,
is flushed to disk before the call returns. A power cut can undo the newest settlements within their ceilings, and
releases: their holds are then open again, which is never too little.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlite_utils

from smith.database import immediate, open_database
from smith.errors import BadInput, BudgetRefused, LedgerConflict, Stale, Unavailable
from smith.ledger import audit, chain
from smith.ledger.amounts import LABELS, MOST, RESOURCES, TIMES, Amounts, Limits, shown, written
from smith.ledger.holds import Balance, Hold, State
from smith.ledger.schema import MIGRATIONS
from smith.ledger.scopes import check_key, path_of
from smith.ledger.tables import Row, Tables

_NOTHING = Amounts().values
_MEND = "it is the record of what was spent: bring it back from a copy; do not start a new one in its place"


class Ledger:
    """One file, open. Threads may share it; a forked child must open its own."""

    def __init__(self, db: sqlite_utils.Database, path: Path, clock: Callable[[], float]) -> None:
        self.path = path
        self._db = db
        self._tables = Tables(db)
        self._clock = clock
        self._lock = threading.RLock()

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, *, clock: Callable[[], float] = time.time) -> Iterator[Ledger]:
        """Open (and make) the ledger at ``path``; ``clock`` gives seconds since 1970.

        Raises :class:`BadInput` for a file that is no ledger, :class:`Unavailable` for a disk that cannot be written.
        """
        with open_database(path, MIGRATIONS, "ledger", mend=_MEND) as db:
            yield cls(db, path, clock)

    def set_limit(self, scope: str, limit: Limits, *, who: str, why: str) -> None:
        """Give a scope its first limit. The same limit again is no change.

        Raises :class:`LedgerConflict` where it has another one, or where more is spent and held already.
        """
        path = path_of(scope)
        detail = {"who": _said("who", who), "why": _said("why", why)}
        with self._write():
            stands = self._row(scope)
            if stands.limited:
                if stands.limit == limit.values:
                    return
                raise LedgerConflict(f"{scope} has a limit already", hint="change it with: smith budget raise")
            over = [
                LABELS[name]
                for name, free in zip(RESOURCES, stands._replace(limit=limit.values).free, strict=True)
                if free is not None and free < 0
            ]
            if over:
                raise LedgerConflict(f"{scope}: more {', '.join(over)} is spent and held already than that limit")
            self._tables.name(path)
            self._append("limit", scope, detail, amounts=limit.values)
            self._tables.limit(scope, limit)

    def raise_limit(self, scope: str, expected: Limits, limit: Limits, *, who: str, why: str) -> None:
        """Raise a scope's limit from ``expected`` to ``limit``.

        Raises :class:`Stale` where the limit is not ``expected`` (any more), :class:`BadInput` where a resource would
        have less than before.
        """
        path_of(scope)
        detail = {"expected": expected.model_dump(), "who": _said("who", who), "why": _said("why", why)}
        less = [LABELS[n] for n, a, b in zip(RESOURCES, expected.values, limit.values, strict=True) if _lower(b, a)]
        if less:
            raise BadInput(f"{scope}: {', '.join(less)} would have less than before", hint="a limit is only raised")
        with self._write():
            stands = self._row(scope)
            if not stands.limited:
                raise Stale(f"{scope} has no limit that could be raised", hint="see: smith budget show")
            if stands.limit != expected.values:
                raise Stale(f"{scope}: its limit is not what you took it for", hint=f"it is {_limits(stands.limit)}")
            self._append("raise", scope, detail, amounts=limit.values)
            self._tables.limit(scope, limit)

    def reserve(self, scope: str, ceiling: Amounts, *, key: str) -> Hold:
        """Hold ``ceiling`` in ``scope`` and every scope above it, or nothing at all.

        The same key again gives the hold as it is now, with ``fresh`` false. Raises :class:`BudgetRefused`, which says
        which scope and resource, what is left and what was asked, and :class:`LedgerConflict` where the key is in use
        for another hold.
        """
        path = path_of(scope)
        check_key(key)
        with self._write():
            found = self._tables.hold(key)
            if found is not None:
                if (found.scope, found.ceiling) != (scope, ceiling):
                    raise LedgerConflict(f"the key {key} is in use for another hold, in {found.scope}")
                return found
            self._allow(path, ceiling)
            self._tables.name(path)
            at_ms = self._append("reserve", scope, {}, hold=key, amounts=ceiling.values)
            hold = Hold(key=key, scope=scope, ceiling=ceiling, state=State.OPEN, at_ms=at_ms)
            self._tables.open(hold)
            self._add(scope, held=ceiling.values)
        return hold.model_copy(update={"fresh": True})

    def settle(self, hold: Hold | str, used: Amounts, *, evidence: Mapping[str, Any]) -> None:
        """Write down what an open hold really cost, and free the rest of it. The same amounts again are no change.

        What was spent is always written, also where it is more than was held: the money is gone. But more money or
        tokens than were held show that a ceiling was none: the hold is then ``overrun``, and nothing more is granted in
        its tree until somebody has looked at it (:meth:`reconcile`). Only a kill bounds times, so they do not stop the
        rest.
        Raises :class:`LedgerConflict` where the hold ended otherwise.
        """
        with self._write(flush=isinstance(hold, str) or bool(used.beyond(hold.ceiling))):
            found = self._found(hold)
            if found.state in (State.SETTLED, State.OVERRUN) and found.used == used:
                return
            self._must_be(found, State.OPEN)
            state = State.OVERRUN if set(used.beyond(found.ceiling)) - TIMES else State.SETTLED
            self._append("settle", found.scope, {"evidence": evidence}, hold=found.key, amounts=used.values)
            self._end(found, state, used)

    def release(self, hold: Hold | str, *, why: str = "") -> None:
        """Free an open hold of which nothing was spent, for certain. A second time is no change."""
        with self._write(flush=False):
            found = self._found(hold)
            if found.state is State.RELEASED:
                return
            self._must_be(found, State.OPEN)
            self._append("release", found.scope, {"why": why}, hold=found.key)
            self._end(found, State.RELEASED, None)

    def mark_uncertain(self, hold: Hold | str, why: str) -> None:
        """Say that nobody knows what an open hold cost: its whole ceiling stays held. A second time is no change."""
        with self._write():
            found = self._found(hold)
            if found.state is State.UNCERTAIN:
                return
            self._must_be(found, State.OPEN)
            self._append("uncertain", found.scope, {"why": _said("why", why)}, hold=found.key)
            self._tables.end(found.key, State.UNCERTAIN, None)

    def reconcile(self, hold: Hold | str, used: Amounts, *, who: str, why: str, evidence: Mapping[str, Any]) -> None:
        """Decide what an uncertain or overrun hold cost, on somebody's word. The amounts may be above its ceiling.

        Raises :class:`LedgerConflict` where it is neither.
        """
        detail = {"evidence": evidence, "who": _said("who", who), "why": _said("why", why)}
        with self._write():
            found = self._found(hold)
            self._must_be(found, State.UNCERTAIN, State.OVERRUN)
            self._append("reconcile", found.scope, detail, hold=found.key, amounts=used.values)
            self._end(found, State.SETTLED, used)

    def balance(self, scope: str) -> Balance:
        """How a scope stands; all zero and without limit for one that was never named."""
        path_of(scope)
        with self._read():
            return self._row(scope).balance()

    def balances(self, below: str | None = None) -> list[Balance]:
        """Every scope (or ``below`` and what is under it), parents first."""
        with self._read():
            return [row.balance() for row in self._tables.all(below)]

    def holds(self, below: str | None = None, states: Sequence[State] = tuple(State)) -> list[Hold]:
        """Holds in these states, oldest first; of ``below`` and what is under it where that is given."""
        with self._read():
            return list(self._tables.holds(below, states))

    def head(self) -> tuple[int, str]:
        """Number and digest of the last entry. Whoever keeps them can prove later that nothing before was changed."""
        with self._read():
            return chain.head(self._db)

    def check(self, head: tuple[int, str] | None = None) -> list[str]:
        """Prove chain, rules, sums and holds from the entries alone; one line a fault, none where all is well.

        ``head`` is what :meth:`head` gave at an earlier time.
        """
        with self._read(), self._snapshot():
            return audit.check(chain.entries(self._db), self._tables, head)

    def _append(self, kind: str, scope: str, detail: Mapping[str, Any], **rest: Any) -> int:
        at_ms = int(self._clock() * 1000)
        try:
            chain.append(self._db, kind, scope, at_ms=at_ms, detail=detail, **rest)
        except (ValueError, TypeError) as error:
            raise BadInput(f"evidence for the ledger is no JSON: {error}") from error
        return at_ms

    def _allow(self, path: Sequence[str], ceiling: Amounts) -> None:
        """Raise :class:`BudgetRefused` unless every scope of ``path`` has so much left."""
        rows = self._tables.rows(path)
        if not any(stands.limited for stands in rows):
            raise BudgetRefused(
                f"nobody said what {path[-1]} may spend",
                scope=path[-1],
                hint=f"smith budget set {path[0]} usd=... --why ...",
            )
        for stands in rows:
            scope = stands.scope
            if stands.overruns:
                raise BudgetRefused(
                    f"{scope}: {stands.overruns} call(s) cost more than their ceiling, so nothing more is granted",
                    scope=scope,
                    hint="look into it, then: smith budget reconcile KEY",
                )
            for resource, free, asked in zip(RESOURCES, stands.free, ceiling.values, strict=True):
                # Time that is used up ends everything: how much a call will need is often not known beforehand.
                if free is not None and (asked > max(free, 0) or (resource in TIMES and free <= 0)):
                    raise _refusal(stands, resource, max(free, 0), asked)

    def _end(self, hold: Hold, state: State, used: Amounts | None) -> None:
        """Take a hold out of what is held (or what it cost so far out of what is spent), and put in what it cost."""
        new = used.values if used else _NOTHING
        was_over = hold.state is State.OVERRUN
        before = hold.used.values if was_over and hold.used else _NOTHING
        held = _NOTHING if was_over else hold.ceiling.values
        self._add(
            hold.scope,
            spent=[a - b for a, b in zip(new, before, strict=True)],
            held=[-h for h in held],
            overruns=(state is State.OVERRUN) - was_over,
        )
        self._tables.end(hold.key, state, used)

    def _add(
        self, scope: str, *, spent: Sequence[int] = _NOTHING, held: Sequence[int] = _NOTHING, overruns: int = 0
    ) -> None:
        path = path_of(scope)
        root = self._row(path[0])
        sums = zip(root.spent, root.held, spent, held, strict=True)
        if any(max(s + ds, h + dh) > MOST for s, h, ds, dh in sums):
            raise BadInput(f"{path[0]}: so much cannot be counted", hint=f"the largest sum is {MOST}")
        self._tables.add(path, spent, held, overruns)

    def _row(self, scope: str) -> Row:
        return self._tables.rows([scope])[0]

    def _found(self, hold: Hold | str) -> Hold:
        key = hold if isinstance(hold, str) else hold.key
        found = self._tables.hold(check_key(key))
        if found is None:
            raise BadInput(f"no hold has the key {key}", hint="see: smith budget show")
        return found

    def _must_be(self, hold: Hold, *states: State) -> None:
        if hold.state not in states:
            wanted = " or ".join(states)
            raise LedgerConflict(f"hold {hold.key} is {hold.state}, not {wanted}", hint="see: smith budget show")

    @contextlib.contextmanager
    def _write(self, *, flush: bool = True) -> Iterator[None]:
        with self._read():
            self._db.conn.execute(f"PRAGMA synchronous={'FULL' if flush else 'NORMAL'}")
            with immediate(self._db):
                yield

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[None]:
        """One state of the file for several reads, whatever others write meanwhile."""
        self._db.conn.execute("BEGIN")
        try:
            yield
        finally:
            self._db.conn.execute("ROLLBACK")

    @contextlib.contextmanager
    def _read(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.OperationalError as error:
                raise Unavailable(
                    f"{self.path}: {error}", hint="is the disk full, or another program in it?"
                ) from error
            except sqlite3.DatabaseError as error:
                raise BadInput(f"{self.path}: {error}", hint=_MEND) from error


def _lower(new: int | None, old: int | None) -> bool:
    return new is not None and (old is None or new < old)


def _refusal(stands: Row, resource: str, left: int, asked: int) -> BudgetRefused:
    label = LABELS[resource]
    limit = written(resource, stands.limit[RESOURCES.index(resource)])
    why = f"{shown(resource, left)} left, {shown(resource, asked)} asked" if asked > left else "used up"
    return BudgetRefused(
        f"{stands.scope}: {label}: {why}",
        scope=stands.scope,
        resource=resource,
        left=left,
        asked=asked,
        hint=f"smith budget raise {stands.scope} {label}={limit}:MORE --why ...",
    )


def _limits(limit: Sequence[int | None]) -> str:
    stated = [f"{LABELS[n]}={written(n, most)}" for n, most in zip(RESOURCES, limit, strict=True) if most is not None]
    return " ".join(stated) or "unlimited"


def _said(what: str, text: str) -> str:
    if not text.strip():
        raise BadInput(f"a change of the ledger needs {what}")
    return text.strip()
