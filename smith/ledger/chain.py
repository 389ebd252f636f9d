"""The entries of a ledger: appended, never changed, each sealed with a digest over itself and the one before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlite_utils

from smith.ledger.amounts import RESOURCES

FIRST = "0" * 64
"""What the first entry follows."""

_COLUMNS = ("seq", "at_ms", "kind", "scope", "hold", *RESOURCES, "detail", "previous", "digest")
_READ = f"SELECT {', '.join(_COLUMNS)} FROM entries"
_WRITE = f"INSERT INTO entries ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"


@dataclass(frozen=True)
class Entry:
    """One line of a ledger. ``amounts`` is in the order of :data:`RESOURCES`: a limit, a ceiling, or what was used."""

    seq: int
    at_ms: int
    kind: str
    scope: str
    hold: str | None
    amounts: tuple[int | None, ...]
    detail: str
    previous: str
    digest: str

    def seal(self) -> str:
        """The digest that this entry must have: SHA-256 of its JSON, the previous digest included."""
        said = [self.seq, self.at_ms, self.kind, self.scope, self.hold, list(self.amounts), self.detail, self.previous]
        return hashlib.sha256(canonical(said).encode()).hexdigest()


def canonical(data: Any) -> str:
    """The one way in which data becomes text here. Raises ``ValueError`` or ``TypeError`` for what is no JSON."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def head(db: sqlite_utils.Database) -> tuple[int, str]:
    """Number and digest of the last entry."""
    row = db.conn.execute("SELECT seq, digest FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
    return (0, FIRST) if row is None else (int(row[0]), str(row[1]))


def append(
    db: sqlite_utils.Database,
    kind: str,
    scope: str,
    *,
    at_ms: int,
    detail: Mapping[str, Any],
    hold: str | None = None,
    amounts: Sequence[int | None] = (None,) * len(RESOURCES),
) -> None:
    """Write one entry; the caller holds the write lock."""
    seq, previous = head(db)
    entry = Entry(seq + 1, at_ms, kind, scope, hold, tuple(amounts), canonical(detail), previous, "")
    values = (entry.seq, at_ms, kind, scope, hold, *entry.amounts, entry.detail, previous, entry.seal())
    db.conn.execute(_WRITE, values)


def entries(db: sqlite_utils.Database) -> Iterator[Entry]:
    """Every entry, oldest first."""
    for row in db.conn.execute(f"{_READ} ORDER BY seq"):
        yield _entry(row)


def _entry(row: Sequence[Any]) -> Entry:
    seq, at_ms, kind, scope, hold, *amounts, detail, previous, digest = row
    return Entry(seq, at_ms, kind, scope, hold, tuple(amounts), detail, previous, digest)
