"""``state.db``: what is volatile but must survive a kill; see :mod:`smith.database`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import sqlite_utils

from smith.database import Migrations, open_database

MIGRATIONS: Migrations = (
    # 1: runs and their attempts
    (
        """
        CREATE TABLE runs (
            run TEXT PRIMARY KEY,
            panel TEXT NOT NULL,
            agent TEXT NOT NULL,
            model TEXT,
            created_at TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('running', 'done'))
        ) STRICT
        """,
        """
        CREATE TABLE attempts (
            run TEXT NOT NULL REFERENCES runs(run),
            task TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done')),
            ended TEXT,
            verdict TEXT,
            seconds REAL,
            micro_usd INTEGER NOT NULL DEFAULT 0,
            tokens INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (run, task, attempt)
        ) STRICT
        """,
    ),
)


def open_state(path: Path) -> AbstractContextManager[sqlite_utils.Database]:
    """Open (and migrate) the state database; raises as :func:`open_database`."""
    return open_database(path, MIGRATIONS, "state database")
