"""The ledger's rules, one by one: what is granted, what is refused, what is idempotent, what stands after a fault."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from smith.errors import BadInput, BudgetRefused, LedgerConflict, Stale
from smith.ledger import Amounts, Ledger, Limits, State

USD = Limits(usd_micros=100)


def usd(amount: int) -> Amounts:
    return Amounts(usd_micros=amount)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db", clock=lambda: 1_800_000_000.5) as opened:
        opened.set_limit("run", USD, who="me", why="a test")
        yield opened
        assert opened.check() == []


def test_what_is_reserved_counts_in_every_scope_above(ledger: Ledger) -> None:
    hold = ledger.reserve("run/task/attempt", usd(60), key="k")
    assert (hold.fresh, hold.state, hold.at_ms) == (True, State.OPEN, 1_800_000_000_500)
    assert [(b.scope, b.held.usd_micros) for b in ledger.balances()] == [
        ("run", 60),
        ("run/task", 60),
        ("run/task/attempt", 60),
    ]
    assert ledger.balance("run").left == Limits(usd_micros=40)
    assert ledger.balance("run/task").left == Limits()


def test_a_refusal_says_which_scope_and_resource_and_how_much(ledger: Ledger) -> None:
    ledger.set_limit("run/task", Limits(output_tokens=5), who="me", why="less")
    ledger.reserve("run/other", usd(60), key="other")
    with pytest.raises(
        BudgetRefused, match=r"run: usd: \$0.00004 left, \$0.000041 asked.*raise run usd=0.0001:MORE"
    ) as refused:
        ledger.reserve("run/task", usd(41), key="k")
    assert (refused.value.scope, refused.value.resource) == ("run", "usd_micros")
    assert (refused.value.left, refused.value.asked, refused.value.exit_code) == (40, 41, 4)
    with pytest.raises(BudgetRefused) as refused:
        ledger.reserve("run/task/attempt", Amounts(output_tokens=6), key="k")
    assert (refused.value.scope, refused.value.resource) == ("run/task", "output_tokens")
    assert ledger.balance("run").held == usd(60)  # nothing of what was refused is held anywhere
    ledger.reserve("run/task", usd(40), key="k")  # and its key is free


def test_nothing_is_granted_where_nobody_said_how_much(ledger: Ledger) -> None:
    for scope in ("runs", "ru", "run2/task", "RUN"):  # the scope 'run' has nothing to do with them
        with pytest.raises(BudgetRefused, match="nobody said"):
            ledger.reserve(scope, usd(1), key="k")
    ledger.set_limit("free", Limits(), who="me", why="without limit, on purpose")
    ledger.reserve("free/for/all", usd(10**12), key="k")


@pytest.mark.parametrize("scope", ["", "/", "a//b", "/a", "a/", "a/../b", "-a", "a b", "a\n", "a/ä", "a/%", "x" * 201])
def test_a_scope_is_an_exact_path(ledger: Ledger, scope: str) -> None:
    with pytest.raises(BadInput, match="no scope"):
        ledger.reserve(scope, usd(1), key="k")


@pytest.mark.parametrize("key", ["", "a b", "a\n", "ä", "x" * 401])
def test_a_key_is_plain_text(ledger: Ledger, key: str) -> None:
    with pytest.raises(BadInput, match="no key"):
        ledger.reserve("run", usd(1), key=key)


def test_scopes_with_names_that_look_alike_are_apart(ledger: Ledger) -> None:
    names = ("run/a", "run/a-b", "run/a.b", "run/a0", "run/a_", "run/a/b", "run/A")
    for number, scope in enumerate(names):
        ledger.reserve(scope, usd(number + 1), key=scope)
    assert ledger.balance("run/a").held == usd(1 + 6)
    assert {b.scope for b in ledger.balances("run/a")} == {"run/a", "run/a/b"}
    assert {h.key for h in ledger.holds("run/a")} == {"run/a", "run/a/b"}


def test_a_key_is_reserved_once(ledger: Ledger) -> None:
    first = ledger.reserve("run/a", usd(60), key="k")
    again = ledger.reserve("run/a", usd(60), key="k")
    assert again == first.model_copy(update={"fresh": False})
    assert ledger.balance("run").held == usd(60)
    ledger.settle("k", usd(50), evidence={})
    assert ledger.reserve("run/a", usd(60), key="k").used == usd(50)
    for scope, ceiling in (("run/a", usd(61)), ("run/b", usd(60))):
        with pytest.raises(LedgerConflict, match="in use"):
            ledger.reserve(scope, ceiling, key="k")


def test_settling_frees_the_rest_and_happens_once(ledger: Ledger) -> None:
    hold = ledger.reserve("run/a", usd(60), key="k")
    ledger.settle(hold, usd(50), evidence={"id": "response-1"})
    ledger.settle("k", usd(50), evidence={"id": "response-1"})
    stands = ledger.balance("run")
    assert (stands.spent, stands.held, stands.left) == (usd(50), usd(0), Limits(usd_micros=50))
    with pytest.raises(LedgerConflict, match="is settled, not open"):
        ledger.settle("k", usd(49), evidence={})
    for end in (lambda: ledger.release("k"), lambda: ledger.mark_uncertain("k", "?")):
        with pytest.raises(LedgerConflict):
            end()


def test_a_release_frees_all_and_happens_once(ledger: Ledger) -> None:
    hold = ledger.reserve("run/a", usd(60), key="k")
    ledger.release(hold, why="never sent")
    ledger.release(hold)
    assert ledger.balance("run").left == USD
    with pytest.raises(LedgerConflict, match="is released"):
        ledger.settle(hold, usd(1), evidence={})


def test_what_is_uncertain_stays_held_until_somebody_decides(ledger: Ledger) -> None:
    ledger.reserve("run/a", usd(60), key="k")
    ledger.mark_uncertain("k", "the connection broke")
    ledger.mark_uncertain("k", "the connection broke")
    for end in (lambda: ledger.release("k"), lambda: ledger.settle("k", usd(1), evidence={})):
        with pytest.raises(LedgerConflict, match="is uncertain"):
            end()
    with pytest.raises(BudgetRefused):
        ledger.reserve("run/b", usd(41), key="b")
    ledger.reconcile("k", usd(13), who="me", why="the provider's bill", evidence={"bill": 7})
    stands = ledger.balance("run")
    assert (stands.spent, stands.held) == (usd(13), usd(0))
    with pytest.raises(LedgerConflict, match="is settled"):
        ledger.reconcile("k", usd(14), who="me", why="another look", evidence={})


def test_an_overrun_is_written_down_and_stops_its_tree(ledger: Ledger) -> None:
    ledger.set_limit("elsewhere", USD, who="me", why="a test")
    ledger.reserve("run/a", usd(60), key="k")
    ledger.settle("k", usd(170), evidence={})
    stands = ledger.balance("run")
    assert (stands.spent, stands.left, stands.overruns) == (usd(170), Limits(usd_micros=0), 1)
    with pytest.raises(BudgetRefused, match="more than their ceiling"):
        ledger.reserve("run/b", Amounts(), key="b")
    ledger.reserve("elsewhere", usd(100), key="e")
    ledger.reconcile("k", usd(55), who="me", why="the provider paid back", evidence={})
    ledger.reserve("run/b", usd(45), key="b")
    assert ledger.balance("run").spent == usd(55)


def test_time_may_be_overrun_but_ends_all_when_it_is_used_up(ledger: Ledger) -> None:
    ledger.set_limit("time", Limits(wall_ms=1000), who="me", why="a second")
    ledger.reserve("time", Amounts(), key="first")
    ledger.settle("first", Amounts(wall_ms=999), evidence={})
    ledger.reserve("time", Amounts(), key="second")
    ledger.settle("second", Amounts(wall_ms=700), evidence={})
    with pytest.raises(BudgetRefused, match=r"time: wall-s: used up.*wall-s=1:MORE") as refused:
        ledger.reserve("time", usd(1), key="third")
    assert refused.value.resource == "wall_ms"


def test_a_first_limit_is_set_once_and_fits_what_is_there(ledger: Ledger) -> None:
    ledger.set_limit("run", USD, who="somebody", why="the same again")
    with pytest.raises(LedgerConflict, match="has a limit already"):
        ledger.set_limit("run", Limits(usd_micros=200), who="me", why="more")
    ledger.reserve("run/a", usd(60), key="k")
    with pytest.raises(LedgerConflict, match="more usd is spent and held"):
        ledger.set_limit("run/a", Limits(usd_micros=59), who="me", why="less")
    ledger.set_limit("run/a", Limits(usd_micros=60), who="me", why="just enough")


def test_a_limit_is_raised_from_what_it_was(ledger: Ledger) -> None:
    more = Limits(usd_micros=200)
    with pytest.raises(Stale, match=r"not what you took it for \(it is usd=0.0001\)"):
        ledger.raise_limit("run", Limits(usd_micros=99), more, who="me", why="more")
    with pytest.raises(BadInput, match="usd would have less"):
        ledger.raise_limit("run", USD, Limits(usd_micros=99), who="me", why="less")
    with pytest.raises(BadInput, match="wall-s would have less"):
        ledger.raise_limit("run", USD, Limits(usd_micros=200, wall_ms=5), who="me", why="less")
    with pytest.raises(Stale, match="no limit"):
        ledger.raise_limit("run/a", USD, more, who="me", why="more")
    ledger.raise_limit("run", USD, more, who="me", why="more")
    with pytest.raises(Stale):
        ledger.raise_limit("run", USD, more, who="me", why="twice")
    ledger.reserve("run", usd(200), key="k")


def test_nobody_stands_for_nothing(ledger: Ledger) -> None:
    ledger.reserve("run", usd(1), key="k")
    for call in (
        lambda: ledger.set_limit("x", USD, who=" ", why="y"),
        lambda: ledger.raise_limit("run", USD, USD, who="me", why=""),
        lambda: ledger.mark_uncertain("k", ""),
        lambda: ledger.reconcile("k", usd(1), who="", why="y", evidence={}),
    ):
        with pytest.raises(BadInput, match="needs"):
            call()


@pytest.mark.parametrize("evidence", [{"x": float("nan")}, {"x": b"bytes"}, {"x": {1, 2}}])
def test_evidence_is_json_or_nothing_is_written(ledger: Ledger, evidence: dict[str, object]) -> None:
    ledger.reserve("run", usd(1), key="k")
    with pytest.raises(BadInput, match="no JSON"):
        ledger.settle("k", usd(1), evidence=evidence)
    assert ledger.balance("run").held == usd(1)


def test_amounts_are_whole_numbers(ledger: Ledger) -> None:
    for wrong in (1.0, "1", True, -1, 2**53):
        with pytest.raises(ValueError, match="usd_micros"):
            Amounts(usd_micros=wrong)  # type: ignore[arg-type]
    ledger.set_limit("huge", Limits(), who="me", why="no limit")
    ledger.reserve("huge/a", usd(2**53 - 1), key="k")
    with pytest.raises(BadInput, match="cannot be counted"):
        ledger.reserve("huge/b", usd(1), key="l")


def test_an_unknown_hold_is_said(ledger: Ledger) -> None:
    with pytest.raises(BadInput, match="no hold has the key nothing"):
        ledger.settle("nothing", usd(1), evidence={})


def test_entries_are_never_changed_or_removed(ledger: Ledger) -> None:
    ledger.reserve("run", usd(1), key="k")
    with sqlite3.connect(ledger.path) as other:
        for statement in (
            "UPDATE entries SET usd_micros = 0",
            "DELETE FROM entries",
            "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE seq = 1",
            "INSERT INTO entries SELECT seq + 5, at_ms, kind, scope, hold, usd_micros, input_tokens, output_tokens, "
            "cached_tokens, device_ms, wall_ms, detail, digest, digest FROM entries WHERE seq = 2",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="of a ledger"):
                other.execute(statement)


def test_a_ledger_lasts(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.set_limit("run", USD, who="me", why="a test")
        ledger.reserve("run", usd(60), key="k")
        head = ledger.head()
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.head() == head
        assert ledger.balance("run").held == usd(60)
        ledger.settle("k", usd(5), evidence={})
        assert ledger.check(head) == []


def test_rubbish_is_no_ledger_and_is_not_to_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"no database at all, but long enough to be looked at" * 40)
    with pytest.raises(BadInput, match=r"no ledger.*bring it back from a copy"), Ledger.open(tmp_path / "ledger.db"):
        pass
