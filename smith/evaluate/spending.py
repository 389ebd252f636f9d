"""What a run may spend and what it spent: its scopes in the ledger, and what a resume does with a killed try's holds.

A run has the scope ``eval/RUN``, an attempt ``eval/RUN/TASK/attempt-001``. Every try of an attempt has a hold there
while the agent works, and is charged with the time that it took. A killed try is never charged again by the next one,
which has a hold of its own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from smith.evaluate.access import ModelAccess
from smith.gateway.server import Gateway
from smith.ledger import Amounts, Balance, Ledger, Limits, State
from smith.ledger.amounts import RESOURCES, TIMES
from smith.paths import Layout
from smith.records.attempt import RunConfig

_WHO = "smith eval"


def run_scope(run: str) -> str:
    """The scope of a run."""
    return f"eval/{run}"


def attempt_scope(run: str, task: str, number: int) -> str:
    """The scope of one attempt, all of its tries together."""
    return f"{run_scope(run)}/{task}/attempt-{number:03d}"


class Spending:
    """One run's part of the ledger. Only the process that holds the run's lock may have it."""

    def __init__(self, ledger: Ledger, config: RunConfig) -> None:
        self._ledger = ledger
        self._config = config

    def begin(self) -> None:
        """Write down the run's limit at its first start, and decide about holds that a killed process left open."""
        scope = run_scope(self._config.run)
        self._limit(scope, self._config.budget_micro_usd, "--budget-usd")
        for hold in self._ledger.holds(scope, [State.OPEN]):
            costs = any(v for n, v in zip(RESOURCES, hold.ceiling.values, strict=True) if n not in TIMES)
            if costs:
                self._ledger.mark_uncertain(hold, "the process that held it is gone")
            else:
                self._ledger.release(hold, why="the process that measured it is gone; its time is not known")

    @contextlib.contextmanager
    def attempt(self, task: str, number: int) -> Iterator[None]:
        """Charge the time of what is done inside. Raises :class:`BudgetRefused` before anything is done."""
        scope = attempt_scope(self._config.run, task, number)
        if self._config.attempt_micro_usd is not None:
            self._limit(scope, self._config.attempt_micro_usd, "--attempt-usd")
        tries = sum(hold.scope == scope for hold in self._ledger.holds(scope))
        hold = self._ledger.reserve(scope, Amounts(), key=f"{scope}/try-{tries + 1}")
        began = time.monotonic()
        try:
            yield
        finally:
            used = Amounts(wall_ms=int((time.monotonic() - began) * 1000))
            self._ledger.settle(hold, used, evidence={"agent": self._config.agent, "measured": "monotonic clock"})

    def gateway(
        self, access: ModelAccess, task: str, number: int, evidence: Path, place: Path
    ) -> AbstractContextManager[Gateway]:
        """A gateway whose calls are paid by an attempt; inside of :meth:`attempt` only."""
        return access.open(self._ledger, attempt_scope(self._config.run, task, number), evidence, place)

    def spent(self, task: str, number: int) -> Amounts:
        """What an attempt cost so far, interrupted tries included."""
        return self._ledger.balance(attempt_scope(self._config.run, task, number)).spent

    def _limit(self, scope: str, usd_micros: int | None, option: str) -> None:
        # A limit that is there already may have been raised since.
        if not self._ledger.balance(scope).limited:
            why = "no limit was asked for" if usd_micros is None else option
            self._ledger.set_limit(scope, Limits(usd_micros=usd_micros), who=_WHO, why=why)


def balance_of(layout: Layout, config: RunConfig) -> Balance | None:
    """How a run stands in the ledger; None for one that has not begun, or that is older than the ledger."""
    if not layout.ledger.is_file():
        return None
    with Ledger.open(layout.ledger) as ledger:
        found = ledger.balance(run_scope(config.run))
    return found if found.limited else None
