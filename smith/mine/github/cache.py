"""Answers of the forge by URL, in SQLite: an answer is there whole or not at all, whenever a process is killed."""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlite_utils

from smith.database import Migrations, open_database

MIGRATIONS: Migrations = (
    (
        """
        CREATE TABLE pages (
            url TEXT PRIMARY KEY,
            status INTEGER NOT NULL,
            body BLOB NOT NULL,
            etag TEXT,
            last_modified TEXT,
            next TEXT,
            last INTEGER,
            fetched_at REAL NOT NULL
        ) STRICT
        """,
    ),
)
_COLUMNS = "url, status, body, etag, last_modified, next, last, fetched_at"


@dataclass(frozen=True)
class Page:
    """One answer. ``next`` is the URL of the page after it, ``last`` the number of the last page, as the forge said."""

    url: str
    status: int
    body: bytes
    etag: str | None = None
    last_modified: str | None = None
    next: str | None = None
    last: int | None = None
    fetched_at: float = 0.0
    """When it was last known to be current; seconds since the epoch."""

    @cached_property
    def data(self) -> Any:
        """The body as JSON; None where there is none."""
        return json.loads(self.body) if self.body else None

    @property
    def found(self) -> bool:
        """Whether it is what was asked for, and not the word that it is not there."""
        return self.status == 200


class Cache:
    """The pages in one file. Each call is one statement, so several processes may use it at once."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def get(self, url: str) -> Page | None:
        """The kept answer, however old."""
        row = self._db.conn.execute(f"SELECT {_COLUMNS} FROM pages WHERE url = ?", [url]).fetchone()
        if row is None:
            return None
        try:
            return Page(row[0], row[1], zlib.decompress(row[2]), *row[3:])
        except zlib.error:
            return None  # spoilt by somebody; it is asked for again

    def fetched(self, url: str) -> tuple[int, float] | None:
        """Status and time of the kept answer, without its body."""
        row = self._db.conn.execute("SELECT status, fetched_at FROM pages WHERE url = ?", [url]).fetchone()
        return None if row is None else (row[0], row[1])

    def put(self, page: Page) -> None:
        """Keep ``page`` in the place of what was there."""
        # A page of a hundred pull requests is a megabyte or more, most of it descriptions of the same repository.
        body = zlib.compress(page.body)
        values = [page.url, page.status, body, page.etag, page.last_modified, page.next, page.last, page.fetched_at]
        self._db.conn.execute(f"INSERT OR REPLACE INTO pages ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


@contextlib.contextmanager
def open_cache(path: Path) -> Iterator[Cache]:
    """Open (or make) the cache; raises as :func:`~smith.database.open_database`."""
    with open_database(path, MIGRATIONS, "cache of GitHub's answers") as db:
        yield Cache(db)
