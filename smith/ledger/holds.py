"""Holds and balances: what a ledger answers with."""

from __future__ import annotations

from enum import StrEnum

from smith.ledger.amounts import Amounts, Limits
from smith.records.base import Record


class State(StrEnum):
    """What has become of a hold."""

    OPEN = "open"
    """Reserved; the money may be on its way."""
    SETTLED = "settled"
    RELEASED = "released"
    """Nothing was spent."""
    UNCERTAIN = "uncertain"
    """Nobody knows what was spent: the whole ceiling stays held until it is reconciled."""
    OVERRUN = "overrun"
    """More was spent than was reserved: nothing more is granted beside it until it is reconciled."""


class Hold(Record):
    """One reservation."""

    key: str
    scope: str
    ceiling: Amounts
    state: State
    used: Amounts | None = None
    """What was spent, once that is known."""
    at_ms: int
    """When it was reserved, in milliseconds since 1970."""
    fresh: bool = False
    """Whether the call that returned it made it. One that is open and not fresh was made before, perhaps by a process
    that died: what it was for may have happened, and must not be done again under this key."""


class Balance(Record):
    """How a scope stands."""

    scope: str
    limit: Limits
    """Its own; what scopes above it still allow may be less."""
    limited: bool = False
    """Whether somebody has set a limit, if an unlimited one."""
    spent: Amounts
    held: Amounts
    overruns: int = 0
    """Holds at or below it that were overrun and not reconciled yet."""

    @property
    def left(self) -> Limits:
        """What its own limit still allows, never below zero; ``None`` is without limit."""
        rows = zip(self.limit.values, self.spent.values, self.held.values, strict=True)
        return Limits.of([None if limit is None else max(0, limit - spent - held) for limit, spent, held in rows])

    def document(self) -> dict[str, object]:
        """For JSON: the resources by name, with what is left."""
        return {**self.model_dump(mode="json"), "left": self.left.model_dump(mode="json")}
