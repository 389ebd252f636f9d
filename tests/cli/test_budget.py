"""``smith budget`` as a user calls it, in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from smith.freeze.bundle import Store
from smith.ledger import Amounts, Ledger, Limits


def budget(store: Store, *args: str, check: int = 0) -> Any:
    """Run it; the parsed JSON where that was asked for, else all that it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), "budget", *args],
        capture_output=True,
        text=True,
    )
    assert done.returncode == check, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout) if "--json" in args else done.stdout + done.stderr


@pytest.fixture
def spent(store: Store) -> Store:
    """A data repository in which a run has spent, and left a hold that nobody knows about."""
    with Ledger.open(store.layout.ledger) as ledger:
        ledger.set_limit("eval/run", Limits(usd_micros=20_000_000), who="me", why="a test")
        ledger.reserve("eval/run/task/attempt-001", Amounts(usd_micros=1_500_000, output_tokens=9000), key="call-1")
        ledger.settle("call-1", Amounts(usd_micros=1_250_001, output_tokens=800), evidence={})
        ledger.reserve("eval/run/task/attempt-001", Amounts(usd_micros=3_000_000), key="call-2")
        ledger.mark_uncertain("call-2", "the connection broke")
    return store


def test_where_nothing_was_spent_nothing_is_made(store: Store) -> None:
    assert "nothing was spent" in budget(store, "show")
    assert budget(store, "show", "--json") == {"scopes": [], "holds": [], "head": f"0:{'0' * 64}"}
    assert budget(store, "check", "--json")["faults"] == []
    assert "no ledger yet" in budget(store, "raise", "eval", "usd=1:2", "--why", "more", check=2)
    assert "no ledger yet" in budget(store, "reconcile", "k", "--why", "more", check=2)
    assert not store.layout.ledger.exists()


def test_show_tells_what_is_spent_held_and_left(spent: Store) -> None:
    said = budget(spent, "show", "--json")
    assert [s["scope"] for s in said["scopes"]] == [
        "eval",
        "eval/run",
        "eval/run/task",
        "eval/run/task/attempt-001",
    ]
    run = said["scopes"][1]
    assert (run["spent"]["usd_micros"], run["held"]["usd_micros"]) == (1_250_001, 3_000_000)
    assert run["left"]["usd_micros"] == 15_749_999
    assert [(h["key"], h["state"]) for h in said["holds"]] == [("call-2", "uncertain")]
    text = budget(spent, "show")
    assert "$1.250001 + $3.00 held of $20.00" in text
    assert "call-2" in text
    assert "attempt-001" not in text.split("holds that nobody")[0]
    assert "attempt-001" in budget(spent, "show", "eval/run")
    assert "no scope 'eval/ru'" in budget(spent, "show", "eval/ru", check=2)


def test_a_limit_is_raised_by_who_knows_it(spent: Store) -> None:
    assert "(it is usd=20)" in budget(spent, "raise", "eval/run", "usd=19:50", "--why", "more", check=2)
    assert "of $50.00" in budget(spent, "raise", "eval/run", "usd=20:50", "--why", "more", "--who", "somebody")
    budget(spent, "raise", "eval/run", "usd=50:unlimited", "--why", "all of it")
    run = budget(spent, "show", "eval/run", "--json")["scopes"][0]
    assert run["limit"]["usd_micros"] is None
    with Ledger.open(spent.layout.ledger) as ledger:
        said = ledger._db.execute("SELECT detail FROM entries WHERE kind = 'raise' ORDER BY seq").fetchall()
    assert [json.loads(detail)["why"] for (detail,) in said] == ["more", "all of it"]
    assert json.loads(said[0][0])["who"] == "somebody"


def test_a_first_limit_for_all_runs_together(spent: Store) -> None:
    assert "more usd is spent" in budget(spent, "set", "eval", "usd=4.25", "--why", "less", check=2)
    assert "of $4.250001" in budget(spent, "set", "eval", "usd=4.250001", "wall-s=0.5", "--why", "just enough")
    with Ledger.open(spent.layout.ledger) as ledger:
        assert ledger.balance("eval").limit == Limits(usd_micros=4_250_001, wall_ms=500)


def test_what_is_uncertain_is_reconciled(spent: Store) -> None:
    budget(spent, "reconcile", "call-2", "usd=0.75", "output-tokens=3", "--why", "the provider's page")
    said = budget(spent, "show", "eval/run", "--json")
    assert said["holds"] == []
    assert said["scopes"][0]["spent"]["usd_micros"] == 2_000_001
    assert "is settled" in budget(spent, "reconcile", "call-2", "usd=0.75", "--why", "twice", check=2)


def test_check_proves_and_says_what_is_wrong(spent: Store) -> None:
    assert "5 entries, all sums agree" in budget(spent, "check")
    head = budget(spent, "check", "--json")["head"]
    budget(spent, "reconcile", "call-2", "--why", "never sent")
    assert budget(spent, "check", "--head", head, "--json")["faults"] == []
    assert "is not there" in budget(spent, "check", "--head", f"5:{'0' * 64}", check=1)
    with Ledger.open(spent.layout.ledger) as ledger:
        ledger._db.conn.execute("UPDATE scopes SET spent_usd_micros = 0 WHERE scope = 'eval/run'")
        ledger._db.conn.commit()
    assert "scope eval/run: spent" in budget(spent, "check", check=1)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["show", "a//b"], "no scope"),
        (["set", "a//b", "usd=1", "--why", "x"], "no scope"),
        (["set", "a", "dollars=1", "--why", "x"], "'dollars=1' is no amount (NAME=VALUE"),
        (["set", "a", "usd=1", "usd=2", "--why", "x"], "given twice"),
        (["set", "a", "usd=0.0000001", "--why", "x"], "finer than"),
        (["set", "a", "usd=-1", "--why", "x"], "'-1' is no amount"),
        (["set", "a", "usd=1e99999999", "--why", "x"], "no amount"),
        (["set", "a", "usd=1e-99999999", "--why", "x"], "no amount"),
        (["set", "a", "usd=nan", "--why", "x"], "no amount"),
        (["set", "a", "usd=9007199255", "--why", "x"], "more than can be counted"),
        (["set", "a", f"usd=1.{'0' * 40}1", "--why", "x"], "finer than"),
        (["set", "a", "input-tokens=1.5", "--why", "x"], "finer than"),
        (["set", "a", "usd=1", "--why", " "], "needs why"),
        (["raise", "eval/run", "usd=20", "--why", "x"], "from what to what"),
        (["raise", "eval/run", "usd=20:10", "--why", "x"], "usd would have less"),
        (["raise", "eval", "usd=20:30", "--why", "x"], "no limit that could be raised"),
        (["reconcile", "nothing", "--why", "x"], "no hold has the key nothing"),
        (["reconcile", "a b", "--why", "x"], "no key"),
        (["check", "--head", "5"], "no head"),
    ],
)
def test_bad_input_is_one_line_and_status_2(spent: Store, args: list[str], words: str) -> None:
    said = budget(spent, *args, check=2)
    assert words in said
    assert len([line for line in said.splitlines() if line.strip()]) == 1, said
