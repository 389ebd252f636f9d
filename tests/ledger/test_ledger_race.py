"""Several processes at the last of a budget: all of it is granted, and not a micro-dollar more."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ledger_race import want

from smith.errors import BudgetRefused
from smith.ledger import Amounts, Hold, Ledger, Limits

ROUNDS, PROCESSES = 25, 4


def test_processes_that_want_the_last_of_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        for number in range(ROUNDS):
            ledger.set_limit(f"race/{number}", Limits(usd_micros=8), who="me", why="two of three, and a rest")
    spawn = multiprocessing.get_context("spawn")
    together = spawn.Barrier(PROCESSES)
    children = [spawn.Process(target=want, args=(path, f"p{n}", ROUNDS, together)) for n in range(PROCESSES)]
    for child in children:
        child.start()
    for child in children:
        child.join(200)
    assert [child.exitcode for child in children] == [0] * PROCESSES
    with Ledger.open(path) as ledger:
        assert [ledger.balance(f"race/{n}").held.usd_micros for n in range(ROUNDS)] == [6] * ROUNDS
        assert ledger.check() == []


def test_threads_may_share_a_ledger(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.set_limit("race", Limits(usd_micros=20), who="me", why="a test")

        def ask(number: int) -> Hold | None:
            try:
                hold = ledger.reserve("race", Amounts(usd_micros=3), key=f"k{number}")
            except BudgetRefused:
                return None
            ledger.settle(hold, Amounts(usd_micros=2), evidence={})
            return hold

        with ThreadPoolExecutor(8) as pool:
            granted = [hold for hold in pool.map(ask, range(40)) if hold]
        # Each costs 2 of the 3 that it holds: how many hold at once is chance, but the last grant leaves less than 3.
        stands = ledger.balance("race")
        assert stands.spent.usd_micros == 2 * len(granted)
        assert 18 <= stands.spent.usd_micros <= 20
        assert stands.held == Amounts()
        assert ledger.check() == []
