"""What mining remembers between runs: a cache that may be lost at any time, and the last tips that were seen.

Everything in it is named by content: a shape by the raw changes (object ids, modes and paths) and the rules that it was
made with. So a stale answer cannot be given, whatever upstream did meanwhile.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import sqlite_utils

from smith.database import Migrations, immediate, open_database
from smith.errors import BadInput, Unavailable
from smith.git.history import Change
from smith.mine.classify import Shape
from smith.mine.rules import Rules
from smith.records.base import Record
from smith.records.signals import Signals

Value = TypeVar("Value", bound=Record)

LAYOUT = b"4"
"""Part of every key; changed whenever the same changes, rules and words come to another shape or other signals."""

MIGRATIONS: Migrations = (
    (
        "CREATE TABLE shapes (key BLOB PRIMARY KEY, shape BLOB NOT NULL) STRICT, WITHOUT ROWID",
        "CREATE TABLE tips (repo TEXT NOT NULL, branch TEXT NOT NULL, tip TEXT NOT NULL, PRIMARY KEY (repo, branch))"
        " STRICT, WITHOUT ROWID",
        "CREATE TABLE histories (repo TEXT NOT NULL, branch TEXT NOT NULL, layout BLOB NOT NULL, tip TEXT NOT NULL,"
        " landings BLOB NOT NULL, key BLOB NOT NULL, merged BLOB NOT NULL, PRIMARY KEY (repo, branch)) STRICT",
    ),
    ("CREATE TABLE signals (key BLOB PRIMARY KEY, signals BLOB NOT NULL) STRICT, WITHOUT ROWID",),
)
_AT_ONCE = 500


class Store:
    """The open cache, or with ``db=None`` one that remembers nothing."""

    def __init__(self, db: sqlite_utils.Database | None, rules: Rules) -> None:
        self._db = db
        self._prefix = LAYOUT + rules.digest

    def key(self, changes: Sequence[Change]) -> bytes:
        """The name of the shape of ``changes``."""
        rows = ((c.old_mode, c.new_mode, c.old_oid, c.new_oid, c.status, c.path, c.old_path or "") for c in changes)
        lines = "".join(["\0".join(row) + "\n" for row in rows])
        named = self._prefix + lines.encode("utf-8", "surrogateescape")
        return hashlib.blake2b(named, digest_size=20).digest()

    def shapes(self, keys: Iterable[bytes]) -> dict[bytes, Shape]:
        """The shapes that are known."""
        return self._kept("SELECT key, shape FROM shapes", keys, Shape)

    def remember(self, shapes: Mapping[bytes, Shape]) -> None:
        """Keep shapes for another time. A disk that is full is no reason to fail."""
        self._keep("INSERT OR REPLACE INTO shapes (key, shape) VALUES (?, ?)", shapes)

    def signals(self, keys: Iterable[bytes]) -> dict[bytes, Signals]:
        """The signals that are known."""
        return self._kept("SELECT key, signals FROM signals", keys, Signals)

    def remember_signals(self, signals: Mapping[bytes, Signals]) -> None:
        """Keep signals for another time."""
        self._keep("INSERT OR REPLACE INTO signals (key, signals) VALUES (?, ?)", signals)

    def _kept(self, asking: str, keys: Iterable[bytes], of: type[Value]) -> dict[bytes, Value]:
        found: dict[bytes, Value] = {}
        if self._db is None:
            return found
        wanted = list(dict.fromkeys(keys))
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            for key, data in self._db.conn.execute(f"{asking} WHERE key IN ({marks})", some):
                # A damaged row is as good as none.
                with contextlib.suppress(ValueError, zlib.error):
                    found[key] = _record(of, zlib.decompress(data))
        return found

    def _keep(self, asking: str, records: Mapping[bytes, Record]) -> None:
        if self._db is None or not records:
            return
        rows = [(key, zlib.compress(record.dump_line(), 1)) for key, record in records.items()]
        with contextlib.suppress(sqlite3.OperationalError), immediate(self._db):
            self._db.conn.executemany(asking, rows)

    def digest(self, *words: str) -> bytes:
        """A name for what follows from ``words`` alone."""
        digest = hashlib.blake2b(LAYOUT, digest_size=20)
        for word in words:
            digest.update(word.encode() + b"\n")
        return digest.digest()

    def landings(self, repo: str, branch: str, lacking: bytes) -> tuple[str | None, bytes | None, bool]:
        """The last landed commit of what is kept of a branch, its landings, packed, and whether no blob was missing.

        What was kept where some were holds only while ``lacking``, the name of what the clone has, is the same.
        """
        row = self._history("tip, landings, layout", repo, branch, lacking)
        return (str(row[0]), bytes(row[1]), bytes(row[2]) == LAYOUT) if row else (None, None, True)

    def recognised(self, repo: str, branch: str, key: bytes, lacking: bytes) -> bytes | None:
        """The pull requests of a branch, packed, where they follow from what ``key`` names."""
        row = self._history("key, merged", repo, branch, lacking)
        return bytes(row[1]) if row and bytes(row[0]) == key else None

    def _history(self, columns: str, repo: str, branch: str, lacking: bytes) -> tuple[Any, ...] | None:
        if self._db is None:
            return None
        asking = f"SELECT {columns} FROM histories WHERE repo=? AND branch=? AND layout IN (?, ?)"
        asked = [repo, branch, LAYOUT, LAYOUT + lacking]
        row: tuple[Any, ...] | None = self._db.conn.execute(asking, asked).fetchone()
        return row

    def remember_history(
        self, repo: str, branch: str, tip: str, landings: bytes | None, key: bytes, merged: bytes, lacking: bytes = b""
    ) -> None:
        """Keep a branch as it is now; ``landings=None`` where they are those that are kept already.

        ``lacking`` names what the clone has, where blobs were missing that were needed.
        """
        if self._db is None:
            return
        with contextlib.suppress(sqlite3.OperationalError), immediate(self._db):
            if landings is None:
                asking = "UPDATE histories SET key=?, merged=? WHERE repo=? AND branch=? AND tip=? AND layout=?"
                self._db.conn.execute(asking, [key, merged, repo, branch, tip, LAYOUT + lacking])
            else:
                row = [repo, branch, LAYOUT + lacking, tip, landings, key, merged]
                self._db.conn.execute("INSERT OR REPLACE INTO histories VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def last_tip(self, repo: str, branch: str) -> str | None:
        """What ``branch`` of the repository at ``repo`` named when it was mined last."""
        if self._db is None:
            return None
        row = self._db.conn.execute("SELECT tip FROM tips WHERE repo=? AND branch=?", [repo, branch]).fetchone()
        return str(row[0]) if row else None

    def remember_tip(self, repo: str, branch: str, tip: str) -> None:
        """Keep what ``branch`` names now."""
        if self._db is not None:
            with contextlib.suppress(sqlite3.OperationalError), immediate(self._db):
                self._db.conn.execute("INSERT OR REPLACE INTO tips VALUES (?, ?, ?)", [repo, branch, tip])


def _record(of: type[Value], data: bytes) -> Value:
    try:
        return of.model_validate_json(data)
    except ValueError:
        # Half a surrogate pair, as names that are no UTF-8 have it, is read by the slower way only.
        return of.model_validate(json.loads(data))


@contextlib.contextmanager
def _checked(path: Path) -> Iterator[sqlite_utils.Database]:
    """The cache, with all of its tables. Raises :class:`BadInput` or :class:`Unavailable`."""
    with open_database(path, MIGRATIONS, "mining cache") as db:
        for table in ("shapes", "tips", "histories", "signals"):
            db.conn.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
        yield db


@contextlib.contextmanager
def open_store(path: Path | None, rules: Rules) -> Iterator[Store]:
    """Open the cache at ``path``. A damaged one is begun anew; where none can be written, nothing is remembered."""
    with contextlib.ExitStack() as stack:
        db: sqlite_utils.Database | None = None
        if path is not None:
            try:
                db = stack.enter_context(_checked(path))
            except (BadInput, Unavailable):
                # Damaged, or of another smith: it is only a cache.
                with contextlib.suppress(BadInput, Unavailable, OSError):
                    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                        path.with_name(name).unlink(missing_ok=True)
                    db = stack.enter_context(_checked(path))
        yield Store(db, rules)
