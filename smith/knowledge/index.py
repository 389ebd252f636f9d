"""The full-text index: SQLite FTS5 in ``.smith/``, brought up to date from the files whenever it is opened.

Nothing is kept in it that is not in the files, and none of it is committed: a generated file in git is in the way of
every second proposal.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlite_utils

from smith.database import Migrations, immediate, open_database
from smith.errors import RecordError
from smith.freeze.lineages import lineages
from smith.knowledge.base import Known, Sealed, evidence_paths, load_evidence
from smith.knowledge.cards import CardFile, card_paths, load
from smith.knowledge.posterior import posterior, total
from smith.paths import Layout, write_atomically
from smith.records.base import to_json
from smith.records.card import Card, Status
from smith.records.sealed import Evidence

MIGRATIONS: Migrations = (
    (
        # Apart from the texts, so that filtering what a search found reads few pages.
        "CREATE TABLE cards (place INTEGER PRIMARY KEY, file TEXT NOT NULL UNIQUE, stat TEXT NOT NULL,"
        " digest TEXT NOT NULL, id TEXT NOT NULL, operator TEXT NOT NULL, languages TEXT NOT NULL,"
        " devices TEXT NOT NULL, status TEXT NOT NULL) STRICT",
        "CREATE INDEX cards_id ON cards (id)",
        "CREATE TABLE texts (place INTEGER PRIMARY KEY REFERENCES cards ON DELETE CASCADE, title TEXT NOT NULL,"
        " told TEXT NOT NULL, body TEXT NOT NULL, card TEXT NOT NULL) STRICT",
        "CREATE TABLE evidence (digest TEXT PRIMARY KEY, card TEXT NOT NULL, evidence TEXT NOT NULL) STRICT",
        "CREATE INDEX evidence_card ON evidence (card)",
        "CREATE VIRTUAL TABLE texts_fts"
        " USING FTS5 (title, told, body, tokenize='porter', content='texts', content_rowid='place')",
        "CREATE TRIGGER texts_in AFTER INSERT ON texts BEGIN INSERT INTO texts_fts (rowid, title, told, body)"
        " VALUES (new.place, new.title, new.told, new.body); END",
        "CREATE TRIGGER texts_out AFTER DELETE ON texts BEGIN"
        " INSERT INTO texts_fts (texts_fts, rowid, title, told, body)"
        " VALUES ('delete', old.place, old.title, old.told, old.body); END",
    ),
)
_WHOLE = "SELECT * FROM cards JOIN texts USING (place)"
_MEND = "remove it: it is made anew from the cards"


@dataclass(frozen=True)
class Wanted:
    """Which cards a search is for; what is empty is any."""

    operator: str = ""
    language: str = ""
    device: str = ""
    everything: bool = False
    """Stale and retracted cards too."""

    def where(self) -> tuple[str, list[str]]:
        """As a condition of SQL with its arguments."""
        parts, given = ["1"], []
        for column, value in (("operator", self.operator), ("languages", self.language), ("devices", self.device)):
            if value:
                parts.append(f"instr(' ' || {column} || ' ', ?) > 0")
                given.append(f" {value} ")
        if not self.everything:
            parts.append("status = ?")
            given.append(Status.ACTIVE.value)
        return " AND ".join(parts), given


class Index:
    """The open index of a data repository."""

    def __init__(self, db: sqlite_utils.Database, layout: Layout) -> None:
        self._db, self._layout = db, layout
        self._lineages = lineages(layout)

    def refresh(self) -> int:
        """Read what was added or changed, and forget what has gone. Gives how many files that were."""
        with immediate(self._db):
            return self._refresh_cards() + self._refresh_evidence()

    def _refresh_cards(self) -> int:
        known = dict(self._db.conn.execute("SELECT file, stat FROM cards").fetchall())
        there = {path: _stat(path) for path in card_paths(self._layout)}
        names = {path.relative_to(self._layout.root).as_posix(): path for path in there}
        gone = [name for name in known if name not in names or known[name] != there[names[name]]]
        fresh = [name for name, path in names.items() if known.get(name) != there[path]]
        self._db.conn.executemany("DELETE FROM cards WHERE file = ?", [(name,) for name in gone])
        for card, text in self._card_rows((name, names[name], there[names[name]]) for name in fresh):
            made = self._db.conn.execute(
                "INSERT INTO cards (file, stat, digest, id, operator, languages, devices, status)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                card,
            )
            self._db.conn.execute(
                "INSERT INTO texts (place, title, told, body, card) VALUES (?, ?, ?, ?, ?)", (made.lastrowid, *text)
            )
        return len(gone) + len(fresh)

    def _card_rows(self, fresh: Iterable[tuple[str, Path, str]]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """For each card what it is found by, and its texts."""
        for name, path, stat in fresh:
            try:
                file = load(self._layout, path)
            except RecordError:
                continue  # for the check to say
            card, where = file.card, file.card.applies_to
            told = (card.id, card.lever, card.aim.value, where.operator, *where.languages, *where.devices)
            told = (*told, *where.dtypes, where.regime, *card.symbols)
            languages, devices = " ".join(where.languages), " ".join(where.devices)
            yield (
                (name, stat, file.digest, card.id, where.operator, languages, devices, card.status.value),
                (card.title, " ".join(told), file.body, card.dump_line().decode()),
            )

    def _refresh_evidence(self) -> int:
        known = {row[0] for row in self._db.conn.execute("SELECT digest FROM evidence")}
        there = {path.stem: path for path in evidence_paths(self._layout)}
        gone = known - there.keys()
        fresh = sorted(there.keys() - known)
        self._db.conn.executemany("DELETE FROM evidence WHERE digest = ?", [(digest,) for digest in gone])
        rows = []
        for digest in fresh:
            with contextlib.suppress(RecordError):
                sealed = load_evidence(self._layout, there[digest])
                if sealed.digest == digest:
                    rows.append((digest, sealed.evidence.card, sealed.evidence.dump_line().decode()))
        self._db.conn.executemany("INSERT INTO evidence (digest, card, evidence) VALUES (?, ?, ?)", rows)
        return len(gone) + len(rows)

    def search(self, words: str, wanted: Wanted, limit: int) -> list[Known]:
        """Cards that hold all of ``words``, else any of them, the best match (BM25) first; all cards for no words."""
        condition, given = wanted.where()
        if not words.strip():
            rows = self._db.query(f"{_WHOLE} WHERE {condition} ORDER BY file LIMIT ?", [*given, limit])
            return self._known(list(rows))
        quoted = ['"' + word.replace('"', '""') + '"' for word in words.split()]
        for joint in (" ", " OR "):
            # Places first: every row that matches is sorted, and a whole card is many pages.
            best = self._db.conn.execute(
                "SELECT cards.place FROM texts_fts JOIN cards ON cards.place = texts_fts.rowid"
                f" WHERE texts_fts MATCH ? AND {condition} ORDER BY bm25(texts_fts, 4.0, 4.0, 1.0), file LIMIT ?",
                [joint.join(quoted), *given, limit],
            ).fetchall()
            if best:
                marks = ", ".join("?" * len(best))
                asking = f"{_WHOLE} WHERE place IN ({marks})"
                rows = {row["place"]: row for row in self._db.query(asking, [place for (place,) in best])}
                return self._known([rows[place] for (place,) in best])
        return []

    def by_id(self, wanted: str) -> list[Known]:
        """Cards whose identifier begins with ``wanted``."""
        rows = self._db.query(f"{_WHOLE} WHERE substr(id, 1, ?) = ? ORDER BY file", [len(wanted), wanted])
        return self._known(list(rows))

    def every(self) -> Iterator[Known]:
        """Every card, by identifier."""
        rows = list(self._db.query(f"{_WHOLE} ORDER BY id, file"))
        for start in range(0, len(rows), 400):
            yield from self._known(rows[start : start + 400])

    def _known(self, rows: Sequence[dict[str, str]]) -> list[Known]:
        ids = sorted({row["id"] for row in rows})
        evidence: defaultdict[str, list[Sealed]] = defaultdict(list)
        marks = ", ".join("?" * len(ids))
        asking = f"SELECT * FROM evidence WHERE card IN ({marks}) ORDER BY digest"
        for row in self._db.query(asking, ids):
            found = Evidence.loads(row["evidence"].encode(), f"{row['digest']}.json")
            evidence[row["card"]].append(Sealed(row["digest"], found))
        return [
            Known(
                CardFile(row["file"], Card.loads(row["card"].encode(), "card.json"), row["body"], row["digest"]),
                tuple(evidence.get(row["id"], ())),
                self._lineages,
            )
            for row in rows
        ]


def _stat(path: Path) -> str:
    found = os.lstat(path)
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


@contextlib.contextmanager
def open_index(layout: Layout) -> Iterator[Index]:
    """Open the index and bring it up to date; raises as :func:`smith.database.open_database`."""
    with open_database(layout.knowledge_index, MIGRATIONS, "index of knowledge", mend=_MEND) as db:
        index = Index(db, layout)
        index.refresh()
        yield index


def line_of(known: Known) -> dict[str, object]:
    """One card in short, as the list and ``--json`` have it."""
    card, counts = known.file.card, known.counts
    whole = posterior(total(counts))
    return {
        "id": card.id,
        "file": known.file.where,
        "title": card.title,
        "aim": card.aim.value,
        "lever": card.lever,
        "applies_to": card.applies_to.model_dump(mode="json"),
        "status": card.status.value,
        "effects": [effect.model_dump(mode="json") for effect in known.effects],
        "helps": {"all": whole.model_dump(mode="json")}
        | {origin.value: posterior(some).model_dump(mode="json") for origin, some in counts.items()},
        "cited": {origin.value: posterior(some).model_dump(mode="json") for origin, some in known.cited.items()},
        "evidence": [sealed.digest for sealed in known.evidence],
    }


def write_list(index: Index, path: Path) -> int:
    """Write a line of JSON for each card, sorted by identifier; gives how many."""
    lines = [to_json(line_of(known)) for known in index.every()]
    write_atomically(path, b"".join(line + b"\n" for line in lines))
    return len(lines)
