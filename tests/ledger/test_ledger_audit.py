"""``check`` finds what somebody does to the file behind the ledger's back."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from smith.ledger import Amounts, Ledger, Limits
from smith.ledger.chain import FIRST, Entry

KEEP = "DROP TRIGGER entries_never_change; DROP TRIGGER entries_never_go; DROP TRIGGER entries_follow_each_other;"


def usd(amount: int) -> Amounts:
    return Amounts(usd_micros=amount)


@pytest.fixture
def path(tmp_path: Path, whole: Path) -> Path:
    """A copy of a ledger with something of everything in it."""
    return Path(shutil.copy(whole, tmp_path))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    with Ledger.open(path, clock=lambda: 1_800_000_000) as ledger:
        ledger.set_limit("run", Limits(usd_micros=100), who="me", why="a test")
        ledger.reserve("run/a", usd(60), key="k1")
        ledger.settle("k1", usd(50), evidence={"id": 1})
        ledger.reserve("run/b", usd(50), key="k2")
        ledger.mark_uncertain("k2", "the connection broke")
        ledger.raise_limit("run", Limits(usd_micros=100), Limits(usd_micros=120), who="me", why="more")
        ledger.reserve("run/b", usd(20), key="k3")
        ledger.release("k3", why="never sent")
        ledger.reconcile("k2", usd(10), who="me", why="the bill", evidence={})
        assert ledger.check() == []
    return path


def faults(path: Path, script: str) -> list[str]:
    """What is found after somebody ran a script on the file."""
    with sqlite3.connect(path) as db:
        db.executescript(script)
    with Ledger.open(path) as ledger:
        return ledger.check()


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("UPDATE scopes SET spent_usd_micros = 9 WHERE scope = 'run/a'", "scope run/a: spent"),
        ("UPDATE scopes SET held_usd_micros = 9 WHERE scope = 'run'", "scope run: held"),
        ("UPDATE scopes SET limit_usd_micros = 999 WHERE scope = 'run'", "scope run: limit"),
        ("UPDATE scopes SET overruns = 1 WHERE scope = 'run'", "scope run: overruns"),
        ("DELETE FROM scopes WHERE scope = 'run/b'", "scope run/b: is missing"),
        ("INSERT INTO scopes (scope) VALUES ('more')", "scope more: has no entries"),
        ("UPDATE holds SET state = 'released' WHERE key = 'k1'", "hold k1"),
        ("UPDATE holds SET used_usd_micros = 0 WHERE key = 'k1'", "hold k1"),
        ("DELETE FROM holds WHERE key = 'k3'", "hold k3"),
        (KEEP + "UPDATE entries SET usd_micros = 5 WHERE seq = 3", "entry 3: was changed"),
        (KEEP + "UPDATE entries SET detail = '{}' WHERE seq = 3", "entry 3: was changed"),
        (KEEP + "UPDATE entries SET at_ms = 1 WHERE seq = 2", "entry 2: was changed"),
        (KEEP + "UPDATE entries SET detail = 'no json' WHERE seq = 5", "entry 5: was changed"),
        (KEEP + "DELETE FROM entries WHERE seq = 8", "entry 9: follows entry 7: entries are missing"),
        (KEEP + "DELETE FROM entries WHERE seq = 9", "hold k2"),
        (KEEP + "UPDATE entries SET seq = 99 WHERE seq = 9", "entry 99: follows entry 8"),
    ],
)
def test_a_change_behind_its_back_is_found(path: Path, script: str, found: str) -> None:
    assert any(found in fault for fault in faults(path, script))


def forge(path: Path, change: str, since: int) -> None:
    """Change an entry, and seal it and all after it anew, as one would who knows how the chain is made."""
    columns = (
        "seq, at_ms, kind, scope, hold, usd_micros, input_tokens, output_tokens, cached_tokens, device_ms, wall_ms, "
        "detail, previous, digest"
    )
    with sqlite3.connect(path) as db:
        db.executescript(KEEP)
        db.execute(change)
        before = db.execute("SELECT digest FROM entries WHERE seq = ?", [since - 1]).fetchone()
        previous = before[0] if before else FIRST
        for row in db.execute(f"SELECT {columns} FROM entries WHERE seq >= ? ORDER BY seq", [since]).fetchall():
            entry = Entry(*row[:5], tuple(row[5:11]), row[11], previous, "")
            previous = entry.seal()
            values = [entry.previous, previous, entry.seq]
            db.execute("UPDATE entries SET previous = ?, digest = ? WHERE seq = ?", values)


@pytest.mark.parametrize(
    ("change", "seq", "found"),
    [
        (
            "UPDATE entries SET usd_micros = 101 WHERE seq = 2",
            2,
            "entry 2: was granted $0.000101 over the limit of run",
        ),
        ("UPDATE entries SET usd_micros = 99 WHERE seq = 1", 1, "entry 4: was granted $0.00005 over the limit of run"),
        ("UPDATE entries SET kind = 'release', usd_micros = NULL WHERE seq = 3", 3, "hold k1"),
        ("UPDATE entries SET kind = 'settle' WHERE seq = 9", 9, "entry 9: settle of hold k2, which was uncertain"),
        ("UPDATE entries SET hold = 'k1' WHERE seq = 4", 4, "entry 4: hold k1 was reserved twice"),
        ("UPDATE entries SET scope = 'other/b' WHERE seq = 4", 4, "entry 4: nobody said what other/b may spend"),
        ("UPDATE entries SET scope = 'run//b' WHERE seq = 4", 4, "entry 4: makes no sense"),
        ("UPDATE entries SET scope = 'run/a' WHERE seq = 5", 5, "entry 5: uncertain of hold k2, which run/a does not"),
        ("UPDATE entries SET kind = 'limit' WHERE seq = 6", 6, "entry 6: run had a limit already"),
        ("UPDATE entries SET usd_micros = 90 WHERE seq = 6", 6, "entry 6: the limit of run was lowered"),
        ("UPDATE entries SET usd_micros = -5 WHERE seq = 3", 3, "entry 3: makes no sense"),
        ("UPDATE entries SET usd_micros = 70 WHERE seq = 3", 3, "entry 4: was granted while run had an overrun"),
        ("UPDATE entries SET detail = 'no json' WHERE seq = 1", 1, "entry 1: makes no sense"),
    ],
)
def test_a_rule_that_was_broken_is_found_even_with_the_right_digests(
    path: Path, change: str, seq: int, found: str
) -> None:
    forge(path, change, seq)
    with Ledger.open(path) as ledger:
        found_faults = ledger.check()
    assert any(found in fault for fault in found_faults), found_faults
    assert not any("chain is broken" in fault or "was changed" in fault for fault in found_faults)


def test_a_history_written_anew_is_found_by_whoever_kept_a_head(path: Path) -> None:
    with Ledger.open(path) as ledger:
        head = ledger.head()
        ledger.reserve("run/c", usd(1), key="k4")
        assert ledger.check(head) == []
    forge(path, 'UPDATE entries SET detail = \'{"evidence":{"id":2}}\' WHERE seq = 3', 3)
    with Ledger.open(path) as ledger:
        assert ledger.check() == []  # the chain alone cannot tell
        assert ledger.check(head) == [f"entry 9: is not there with the digest {head[1][:12]}..."]
        assert ledger.check((10**6, "0" * 64)) != []
