"""One of several processes that want the last of the same money at the same time; see test_ledger_race.py."""

from __future__ import annotations

from multiprocessing.synchronize import Barrier
from pathlib import Path

from smith.errors import BudgetRefused
from smith.ledger import Amounts, Ledger


def want(path: Path, name: str, rounds: int, together: Barrier) -> None:
    """In each round, take from the round's scope until it is refused."""
    with Ledger.open(path) as ledger:
        for number in range(rounds):
            together.wait(120)
            for count in range(99):
                try:
                    ledger.reserve(f"race/{number}", Amounts(usd_micros=3), key=f"{name}-{number}-{count}")
                except BudgetRefused:
                    break
