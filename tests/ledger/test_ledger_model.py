"""The ledger against a model of it: random calls, the same answers, the same sums, and a proof after each."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from smith.errors import BudgetRefused, LedgerConflict, Stale
from smith.ledger import Amounts, Ledger, Limits, State
from smith.ledger.amounts import RESOURCES

SCOPES = ("a", "a/b", "a/b/c", "a/bc", "a/b-c", "z", "z/b")
KEYS = tuple(f"k{n}" for n in range(12))

few = st.integers(0, 6)
amounts = st.builds(Amounts, usd_micros=few, output_tokens=few, wall_ms=few)
often_none = st.none() | st.none() | st.none() | few
limits = st.builds(Limits, usd_micros=st.none() | st.integers(0, 30), output_tokens=often_none, wall_ms=often_none)
scopes, keys = st.sampled_from(SCOPES), st.sampled_from(KEYS)


@dataclass
class Held:
    """A hold, as the model sees it."""

    scope: str
    ceiling: Amounts
    state: State = State.OPEN
    used: Amounts = field(default_factory=Amounts)


def under(scope: str, above: str) -> bool:
    return scope.split("/")[: len(above.split("/"))] == above.split("/")


class Model(RuleBasedStateMachine):
    """Holds in a dictionary; every sum is taken anew from all of them. Nothing is shared with the code under test."""

    seen: ClassVar[Counter[str]] = Counter()
    """What the examples came to: an outcome that never occurs is one that is not tested."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.path = Path(self.stack.enter_context(tempfile.TemporaryDirectory())) / "ledger.db"
        self.opened = contextlib.ExitStack()
        self.ledger = self.opened.enter_context(Ledger.open(self.path))
        self.limits: dict[str, Limits] = {}
        self.held: dict[str, Held] = {}
        self.head = self.ledger.head()

    def teardown(self) -> None:
        assert self.ledger.check(self.head) == []
        self.opened.close()
        self.stack.close()

    def total(self, scope: str, resource: str) -> tuple[int, int]:
        """Spent and held in a scope and everything below it."""
        inside = [h for h in self.held.values() if under(h.scope, scope)]
        spent = sum(getattr(h.used, resource) for h in inside if h.state in (State.SETTLED, State.OVERRUN))
        held = sum(getattr(h.ceiling, resource) for h in inside if h.state in (State.OPEN, State.UNCERTAIN))
        return spent, held

    def free(self, scope: str, resource: str) -> int | None:
        limit = getattr(self.limits.get(scope, Limits()), resource)
        return None if limit is None else limit - sum(self.total(scope, resource))

    def grants(self, scope: str, ceiling: Amounts) -> bool:
        above = [s for s in SCOPES if under(scope, s)]
        if not any(s in self.limits for s in above):
            return False
        if any(h.state is State.OVERRUN and under(h.scope, s) for h in self.held.values() for s in above):
            return False
        for s in above:
            for resource in RESOURCES:
                free, asked = self.free(s, resource), getattr(ceiling, resource)
                if free is not None and (asked > max(0, free) or (resource.endswith("_ms") and free <= 0)):
                    return False
        return True

    def expect(self, error: type[Exception] | None, call: Callable[[], object]) -> None:
        before = self.ledger.head()
        try:
            call()
        except (BudgetRefused, LedgerConflict, Stale) as raised:
            assert error is type(raised), f"{type(raised)}: {raised}"
            assert self.ledger.head() == before  # what is refused leaves no trace
        else:
            assert error is None

    @initialize(limit=st.integers(20, 60))
    def begin(self, limit: int) -> None:
        """Without a limit at the top most reservations would be refused for that alone."""
        self.set_limit("a", Limits(usd_micros=limit))

    @rule(scope=scopes, limit=limits)
    def set_limit(self, scope: str, limit: Limits) -> None:
        if scope in self.limits:
            error = None if self.limits[scope] == limit else LedgerConflict
        else:
            sums = [(sum(self.total(scope, r)), getattr(limit, r)) for r in RESOURCES]
            error = LedgerConflict if any(most is not None and total > most for total, most in sums) else None
        self.expect(error, lambda: self.ledger.set_limit(scope, limit, who="model", why="rule"))
        if error is None:
            self.limits[scope] = limit

    @rule(scope=scopes, more=st.integers(0, 9), stale=st.booleans())
    def raise_limit(self, scope: str, more: int, stale: bool) -> None:
        known = self.limits.get(scope, Limits(usd_micros=1))
        usd = known.usd_micros
        new = known.model_copy(update={"usd_micros": None if usd is None or more == 9 else usd + more})
        if stale:
            known = known.model_copy(update={"input_tokens": 5})
            new = new.model_copy(update={"input_tokens": 5})
        error = Stale if stale or scope not in self.limits else None
        self.expect(error, lambda: self.ledger.raise_limit(scope, known, new, who="model", why="rule"))
        if error is None:
            self.limits[scope] = new

    @rule(scope=scopes, ceiling=amounts, key=keys)
    def reserve(self, scope: str, ceiling: Amounts, key: str) -> None:
        known = self.held.get(key)
        if known is not None:
            error: type[Exception] | None = None if (known.scope, known.ceiling) == (scope, ceiling) else LedgerConflict
        else:
            error = None if self.grants(scope, ceiling) else BudgetRefused
            self.seen["granted" if error is None else "refused"] += 1
            stopped = any(h.state is State.OVERRUN and under(scope, h.scope.split("/")[0]) for h in self.held.values())
            self.seen["refused for an overrun"] += stopped and error is not None
        self.expect(error, lambda: self.ledger.reserve(scope, ceiling, key=key))
        if error is None and known is None:
            self.held[key] = Held(scope, ceiling)

    @rule(scope=scopes, ceiling=amounts)
    def reserve_anew(self, scope: str, ceiling: Amounts) -> None:
        self.reserve(scope, ceiling, f"new-{len(self.held)}")

    def one(self, data: st.DataObject, state: State) -> str:
        """Some hold; more often than not one in this state, if there is any, so that something comes of the rule."""
        fitting = sorted(key for key, held in self.held.items() if held.state is state)
        every = sorted(self.held)
        return data.draw(st.sampled_from(fitting) | st.sampled_from(every) if fitting else st.sampled_from(every))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), exact=st.booleans(), some=amounts)
    def settle(self, data: st.DataObject, exact: bool, some: Amounts) -> None:
        key = self.one(data, State.OPEN)
        known = self.held[key]
        used = known.ceiling if exact else some
        again = known.state in (State.SETTLED, State.OVERRUN) and known.used == used
        error = None if again or known.state is State.OPEN else LedgerConflict
        self.expect(error, lambda: self.ledger.settle(key, used, evidence={"from": "model"}))
        if error is None and not again:
            over = used.usd_micros > known.ceiling.usd_micros or used.output_tokens > known.ceiling.output_tokens
            known.state, known.used = State.OVERRUN if over else State.SETTLED, used
            self.seen[known.state] += 1

    @precondition(lambda self: self.held)
    @rule(data=st.data(), uncertain=st.booleans())
    def release_or_doubt(self, data: st.DataObject, uncertain: bool) -> None:
        key = self.one(data, State.OPEN)
        known = self.held[key]
        target = State.UNCERTAIN if uncertain else State.RELEASED
        error = None if known.state in (State.OPEN, target) else LedgerConflict
        call = (lambda: self.ledger.mark_uncertain(key, "rule")) if uncertain else (lambda: self.ledger.release(key))
        self.expect(error, call)
        if error is None:
            self.seen[target] += 1
            known.state = target

    @precondition(lambda self: self.held)
    @rule(data=st.data(), overrun=st.booleans(), used=amounts)
    def reconcile(self, data: st.DataObject, overrun: bool, used: Amounts) -> None:
        key = self.one(data, State.OVERRUN if overrun else State.UNCERTAIN)
        known = self.held[key]
        error = None if known.state in (State.UNCERTAIN, State.OVERRUN) else LedgerConflict
        self.expect(error, lambda: self.ledger.reconcile(key, used, who="model", why="rule", evidence={}))
        if error is None:
            self.seen[f"reconciled {known.state}"] += 1
            known.state, known.used = State.SETTLED, used

    @rule()
    def reopen(self) -> None:
        """As after a restart; and what was written before is still there, unchanged."""
        assert self.ledger.check(self.head) == []
        self.opened.close()
        self.ledger = self.opened.enter_context(Ledger.open(self.path))
        self.head = self.ledger.head()

    @invariant()
    def sums_agree(self) -> None:
        for scope in SCOPES:
            stands = self.ledger.balance(scope)
            assert stands.limit == self.limits.get(scope, Limits())
            for resource in RESOURCES:
                spent, held = self.total(scope, resource)
                assert (getattr(stands.spent, resource), getattr(stands.held, resource)) == (spent, held)


def test_the_ledger_does_what_the_model_does() -> None:
    Model.seen.clear()
    run_state_machine_as_test(Model, settings=settings(max_examples=50, stateful_step_count=40, deadline=None))
    outcomes = ("granted", "refused", "refused for an overrun", *State, "reconciled uncertain", "reconciled overrun")
    assert all(Model.seen[outcome] >= 3 for outcome in outcomes if outcome != State.OPEN), Model.seen
