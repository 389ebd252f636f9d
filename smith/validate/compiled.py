"""What was compiled before: answers by the digest of all that the machine code is made of.

The key comes out of a process that runs the upstream's code, so answers are kept apart by upstream: one repository's
cannot become another's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import sqlite_utils

from smith.database import immediate, open_database
from smith.errors import RecordError
from smith.records.compiled import CompiledLaunch, CompileFailure, Launch

MOST = 200_000
"""Answers that are kept; the oldest go first."""
_LASTING = frozenset(
    {None, CompileFailure.LANGUAGE, CompileFailure.BACK_END, CompileFailure.BINDING, CompileFailure.OUT_OF_RESOURCES}
)
"""What would come out again. A crash or a time-out is tried again."""
_MEND = "remove it: what was compiled is compiled again"

_MIGRATIONS = [
    [
        """CREATE TABLE compiled (
            number INTEGER PRIMARY KEY AUTOINCREMENT, repo TEXT NOT NULL, target TEXT NOT NULL, kernel TEXT NOT NULL,
            key TEXT NOT NULL, answer TEXT NOT NULL, UNIQUE (repo, key))""",
        "CREATE INDEX compiled_by_kernel ON compiled (repo, target, kernel)",
    ]
]


class CompiledBefore:
    """The answers for one upstream in the database at ``path``. Safe for several processes at once."""

    def __init__(self, path: Path, repo: str) -> None:
        self._path, self._repo = path, repo

    def keys(self, launches: Collection[Launch], targets: Collection[str]) -> dict[str, list[str]]:
        """Keys of answers by target, for the kernels of these launches only."""
        kernels = sorted({launch.kernel for launch in launches})
        found: dict[str, list[str]] = {target: [] for target in targets}
        with open_database(self._path, _MIGRATIONS, "list of compiled kernels", mend=_MEND) as db:
            for target in targets:
                for kernel in kernels:
                    rows = db.query(
                        "SELECT key FROM compiled WHERE repo = ? AND target = ? AND kernel = ?",
                        (self._repo, target, kernel),
                    )
                    found[target] += [str(row["key"]) for row in rows]
        return found

    def complete(
        self, launches: Sequence[Launch], answers: Mapping[str, Sequence[CompiledLaunch]]
    ) -> dict[str, list[CompiledLaunch]]:
        """Answers with those that were only recognised filled in; new ones are kept."""
        with open_database(self._path, _MIGRATIONS, "list of compiled kernels", mend=_MEND) as db:
            with immediate(db):
                for target, some in answers.items():
                    self._keep(db, target, launches, some)
                db.conn.execute("DELETE FROM compiled WHERE number <= (SELECT max(number) FROM compiled) - ?", (MOST,))
            return {target: [self._filled(db, answer) for answer in some] for target, some in answers.items()}

    def _keep(
        self, db: sqlite_utils.Database, target: str, launches: Sequence[Launch], answers: Sequence[CompiledLaunch]
    ) -> None:
        for launch, answer in zip(launches, answers, strict=True):
            if answer.key and not answer.cached and answer.failure in _LASTING:
                db.conn.execute(
                    "INSERT OR IGNORE INTO compiled (repo, target, kernel, key, answer) VALUES (?, ?, ?, ?, ?)",
                    (self._repo, target, launch.kernel, answer.key, answer.dump_line().decode()),
                )

    def _filled(self, db: sqlite_utils.Database, answer: CompiledLaunch) -> CompiledLaunch:
        if not answer.cached:
            return answer
        row = db.conn.execute(
            "SELECT answer FROM compiled WHERE repo = ? AND key = ?", (self._repo, answer.key)
        ).fetchone()
        try:
            before = CompiledLaunch.loads(row[0].encode(), "a kept answer") if row else None
        except RecordError:
            before = None
        if before is None:  # removed by another process meanwhile, or never there
            return CompiledLaunch(failure=CompileFailure.NOT_TRIED, detail="its kept answer is gone: try again")
        kept = {"cached": True, "seconds": answer.seconds, "dropped": answer.dropped}
        return before.model_copy(update=kept)
