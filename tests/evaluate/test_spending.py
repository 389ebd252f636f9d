"""What a run does with the ledger: its limits, its tries, and what a killed process left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from smith.errors import BudgetRefused
from smith.evaluate.spending import Spending, attempt_scope, balance_of, run_scope
from smith.ledger import Amounts, Ledger, Limits, State
from smith.paths import Layout
from smith.records.attempt import RunConfig

TASK = "smith-lab__minikernels-60~perf"
SCOPE = attempt_scope("run-1", TASK, 1)


def config(**given: int | None) -> RunConfig:
    return RunConfig(run="run-1", panel="p", tasks=(), agent="nop", created_at="now", smith="0", **given)  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(Layout(tmp_path).ledger) as opened:
        yield opened
        assert opened.check() == []


def test_limits_are_written_down_once_and_may_be_raised(ledger: Ledger) -> None:
    spending = Spending(ledger, config(budget_micro_usd=20, attempt_micro_usd=5))
    spending.begin()
    with spending.attempt(TASK, 1):
        pass
    assert ledger.balance(run_scope("run-1")).limit == Limits(usd_micros=20)
    assert ledger.balance(SCOPE).limit == Limits(usd_micros=5)
    for scope, old in ((run_scope("run-1"), 20), (SCOPE, 5)):
        ledger.raise_limit(scope, Limits(usd_micros=old), Limits(usd_micros=50), who="me", why="more")
    spending.begin()  # a resume
    with spending.attempt(TASK, 1):
        pass
    assert ledger.balance(SCOPE).limit == Limits(usd_micros=50)


def test_every_try_is_charged_with_its_own_time_also_one_that_fails(ledger: Ledger) -> None:
    spending = Spending(ledger, config())
    spending.begin()
    with pytest.raises(RuntimeError), spending.attempt(TASK, 1):
        raise RuntimeError
    with spending.attempt(TASK, 1):
        ledger.reserve(SCOPE, Amounts(usd_micros=7), key="a-call")
        ledger.settle("a-call", Amounts(usd_micros=6, output_tokens=0), evidence={})
    holds = ledger.holds(SCOPE)
    assert {h.key for h in holds} == {f"{SCOPE}/try-1", f"{SCOPE}/try-2", "a-call"}
    assert {h.state for h in holds} == {State.SETTLED}
    assert spending.spent(TASK, 1).usd_micros == 6
    assert spending.spent(TASK, 2) == Amounts()


def test_a_resume_decides_about_holds_of_a_killed_process(ledger: Ledger) -> None:
    spending = Spending(ledger, config(budget_micro_usd=100))
    spending.begin()
    ledger.set_limit("eval/run-2", Limits(), who="me", why="another run, alive")
    ledger.reserve("eval/run-2/x", Amounts(usd_micros=1), key="other")
    ledger.reserve(SCOPE, Amounts(wall_ms=50), key=f"{SCOPE}/try-1")  # as a process that is killed now leaves them
    ledger.reserve(SCOPE, Amounts(usd_micros=60), key="a-call")
    spending.begin()
    assert {h.key: h.state for h in ledger.holds()} == {
        "other": State.OPEN,
        f"{SCOPE}/try-1": State.RELEASED,
        "a-call": State.UNCERTAIN,
    }
    assert ledger.balance(run_scope("run-1")).left == Limits(usd_micros=40)
    with spending.attempt(TASK, 1):
        pass
    assert ledger.holds(SCOPE)[-1].key in {f"{SCOPE}/try-2", f"{SCOPE}/try-3"}


def test_when_time_is_up_no_attempt_begins(ledger: Ledger) -> None:
    ledger.set_limit("eval", Limits(wall_ms=0), who="me", why="none")
    spending = Spending(ledger, config())
    spending.begin()
    with pytest.raises(BudgetRefused) as refused, spending.attempt(TASK, 1):
        pytest.fail("it began")
    assert (refused.value.scope, refused.value.resource) == ("eval", "wall_ms")


def test_a_run_that_has_not_begun_has_no_balance(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert balance_of(layout, config()) is None
    assert not layout.ledger.exists()  # asking makes none
    with Ledger.open(layout.ledger) as ledger:
        assert balance_of(layout, config()) is None
        Spending(ledger, config(budget_micro_usd=9)).begin()
        found = balance_of(layout, config())
    assert found is not None
    assert found.limit == Limits(usd_micros=9)
