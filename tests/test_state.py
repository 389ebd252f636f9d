"""state.db: migrations once, in order, by one of many; clear words for what is no such database."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smith.database import immediate
from smith.errors import BadInput
from smith.state import MIGRATIONS, open_state


def test_a_new_database_has_every_migration(tmp_path: Path) -> None:
    with open_state(tmp_path / "state.db") as db:
        assert db.conn.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        assert {"runs", "attempts"} <= set(db.table_names())
        assert db.conn.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_many_may_open_it_first(tmp_path: Path) -> None:
    def visit(number: int) -> int:
        with open_state(tmp_path / "state.db") as db, immediate(db):
            db.conn.execute("INSERT INTO runs VALUES (?, 'p', 'nop', NULL, '2026-01-01', 'running')", [f"run-{number}"])
        return number

    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(visit, range(24)))) == 24
    with open_state(tmp_path / "state.db") as db:
        assert db["runs"].count == 24


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    with open_state(tmp_path / "state.db") as db:
        with pytest.raises(RuntimeError), immediate(db):
            db.conn.execute("INSERT INTO runs VALUES ('r', 'p', 'nop', NULL, '2026-01-01', 'running')")
            raise RuntimeError
        assert db["runs"].count == 0


def test_a_newer_layout_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as other:
        other.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    with pytest.raises(BadInput, match="newer smith"), open_state(path):
        pass


def test_rubbish_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"no database at all, but long enough to be looked at" * 40)
    with pytest.raises(BadInput, match="no state database"), open_state(path):
        pass
