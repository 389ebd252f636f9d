"""The tables of a ledger.

``entries`` is the ledger: what was written there stays. ``scopes`` and ``holds`` are sums of it, kept so that a
reservation need not read everything; :mod:`smith.ledger.audit` proves them from the entries.
"""

from __future__ import annotations

from smith.database import Migrations

MIGRATIONS: Migrations = (
    # 1
    (
        """
        CREATE TABLE entries (
            seq INTEGER PRIMARY KEY,
            at_ms INTEGER NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN (
                'limit', 'raise', 'reserve', 'settle', 'release', 'uncertain', 'reconcile')),
            scope TEXT NOT NULL,
            hold TEXT,
            usd_micros INTEGER,
            input_tokens INTEGER,
            output_tokens INTEGER,
            cached_tokens INTEGER,
            device_ms INTEGER,
            wall_ms INTEGER,
            detail TEXT NOT NULL,
            previous TEXT NOT NULL,
            digest TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX entries_of_hold ON entries (hold) WHERE hold IS NOT NULL",
        """
        CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END
        """,
        """
        CREATE TRIGGER entries_never_go BEFORE DELETE ON entries
        BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never removed'); END
        """,
        # INSERT OR REPLACE would remove a row without asking the trigger above.
        """
        CREATE TRIGGER entries_follow_each_other BEFORE INSERT ON entries
        WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM entries)
            OR NEW.previous IS NOT coalesce(
                (SELECT digest FROM entries ORDER BY seq DESC LIMIT 1), printf('%064d', 0))
        BEGIN SELECT RAISE(ABORT, 'an entry of a ledger follows the last one'); END
        """,
        """
        CREATE TABLE scopes (
            scope TEXT PRIMARY KEY,
            limited INTEGER NOT NULL DEFAULT 0,
            overruns INTEGER NOT NULL DEFAULT 0 CHECK (overruns >= 0),
            limit_usd_micros INTEGER,
            limit_input_tokens INTEGER,
            limit_output_tokens INTEGER,
            limit_cached_tokens INTEGER,
            limit_device_ms INTEGER,
            limit_wall_ms INTEGER,
            spent_usd_micros INTEGER NOT NULL DEFAULT 0 CHECK (spent_usd_micros >= 0),
            spent_input_tokens INTEGER NOT NULL DEFAULT 0 CHECK (spent_input_tokens >= 0),
            spent_output_tokens INTEGER NOT NULL DEFAULT 0 CHECK (spent_output_tokens >= 0),
            spent_cached_tokens INTEGER NOT NULL DEFAULT 0 CHECK (spent_cached_tokens >= 0),
            spent_device_ms INTEGER NOT NULL DEFAULT 0 CHECK (spent_device_ms >= 0),
            spent_wall_ms INTEGER NOT NULL DEFAULT 0 CHECK (spent_wall_ms >= 0),
            held_usd_micros INTEGER NOT NULL DEFAULT 0 CHECK (held_usd_micros >= 0),
            held_input_tokens INTEGER NOT NULL DEFAULT 0 CHECK (held_input_tokens >= 0),
            held_output_tokens INTEGER NOT NULL DEFAULT 0 CHECK (held_output_tokens >= 0),
            held_cached_tokens INTEGER NOT NULL DEFAULT 0 CHECK (held_cached_tokens >= 0),
            held_device_ms INTEGER NOT NULL DEFAULT 0 CHECK (held_device_ms >= 0),
            held_wall_ms INTEGER NOT NULL DEFAULT 0 CHECK (held_wall_ms >= 0)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE holds (
            key TEXT PRIMARY KEY,
            scope TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('open', 'settled', 'released', 'uncertain', 'overrun')),
            at_ms INTEGER NOT NULL,
            ceiling_usd_micros INTEGER NOT NULL,
            ceiling_input_tokens INTEGER NOT NULL,
            ceiling_output_tokens INTEGER NOT NULL,
            ceiling_cached_tokens INTEGER NOT NULL,
            ceiling_device_ms INTEGER NOT NULL,
            ceiling_wall_ms INTEGER NOT NULL,
            used_usd_micros INTEGER,
            used_input_tokens INTEGER,
            used_output_tokens INTEGER,
            used_cached_tokens INTEGER,
            used_device_ms INTEGER,
            used_wall_ms INTEGER
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX holds_of_scope ON holds (scope, state)",
    ),
)
