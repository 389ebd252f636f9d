"""SQLite through sqlite-utils: opened one way, with numbered migrations, safe for many processes at once."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import sqlite_utils

from smith.errors import BadInput, Unavailable
from smith.paths import locked

Migrations = Sequence[Sequence[str]]
"""Statements of each layout version, applied once each, in order, and never changed after a release."""


ASIDE = "move it aside and start again: evidence does not lie there"


@contextlib.contextmanager
def open_database(
    path: Path, migrations: Migrations, what: str, *, mend: str = ASIDE
) -> Iterator[sqlite_utils.Database]:
    """Open (and migrate) the database at ``path``, called ``what`` in messages, which give ``mend`` where it is broken.

    Raises :class:`BadInput` for a file that is no such database or of a newer smith, :class:`Unavailable` for a disk
    that cannot be written.
    """
    connection: sqlite3.Connection | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{path}: cannot be written: {error.strerror}") from error
    try:
        connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        db = sqlite_utils.Database(connection)
        # SQLite does not wait when two switch to WAL at once, whatever the time limit: one at a time.
        with locked(path.with_name(f"{path.name}.lock")):
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA foreign_keys=ON")
            _migrate(db, path, migrations)
        yield db
    except sqlite3.OperationalError as error:
        full = getattr(error, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR"))
        hint = "is the disk full?" if full else mend
        raise Unavailable(f"{path}: {error}", hint=hint) from error
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{path} is no {what}: {error}", hint=mend) from error
    finally:
        if connection is not None:
            connection.close()


@contextlib.contextmanager
def immediate(db: sqlite_utils.Database) -> Iterator[None]:
    """A transaction that takes the write lock first: every read-then-write needs it, or it may lose to another."""
    db.conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.conn.execute("COMMIT")
    except BaseException:
        if db.conn.in_transaction:  # a full disk has ended it already
            db.conn.execute("ROLLBACK")
        raise


def _migrate(db: sqlite_utils.Database, path: Path, migrations: Migrations) -> None:
    version = _version(db)
    if version > len(migrations):
        raise BadInput(f"{path} was written by a newer smith (layout {version})", hint="update smith")
    for number, statements in enumerate(migrations, start=1):
        if number <= version:
            continue
        with immediate(db):
            # Another process may have come first; the lock is ours now, so look again.
            if _version(db) < number:
                for statement in statements:
                    db.conn.execute(statement)
                db.conn.execute(f"PRAGMA user_version={number}")


def _version(db: sqlite_utils.Database) -> int:
    return int(db.conn.execute("PRAGMA user_version").fetchone()[0])
