"""Reservations for calls: the ceiling of each, lowered to what is left, and waited for while others may give back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from smith.errors import BudgetRefused, UnknownPrice
from smith.gateway.asked import Asked
from smith.gateway.counted import Counted
from smith.ledger import Amounts, Hold, Ledger, State
from smith.ledger.amounts import RESOURCES, TIMES
from smith.ledger.prices import Prices
from smith.ledger.scopes import path_of
from smith.ledger.tariff import Usage

PATIENCE_S = 120.0
"""How long a call waits at most for money that other calls hold and may give back."""
POLL_S = 0.1


@dataclass(frozen=True)
class Paid:
    """A hold, and the call that it covers."""

    hold: Hold
    cap: int
    sent: bytes


class Payer:
    """Pays for the calls of one attempt from ``scope``. Threads may share it."""

    def __init__(
        self,
        ledger: Ledger,
        prices: Prices,
        scope: str,
        model: str,
        provider: str | None,
        *,
        max_device_ms: int,
        patience_s: float = PATIENCE_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.scope, self.model, self.provider = scope, model, provider
        self._ledger, self._prices = ledger, prices
        self._device_ms = max_device_ms if prices.by_device_time(model, provider=provider) else 0
        self._patience_s, self._sleep = patience_s, sleep
        self._counted = Counted()

    def reserve(self, asked: Asked, most: int, key: str, cap_key: str | None = None) -> Paid:
        """Reserve for a reply of at most ``most`` tokens, or of as many as are left.

        A call that others' open holds would cut short, or refuse, waits for them to end. Raises :class:`BudgetRefused`
        (:class:`smith.errors.UnknownPrice` among them) where nothing is to be hoped for.
        """
        wanted = most if asked.wanted is None else min(most, asked.wanted)
        cap, deadline = wanted, time.monotonic() + self._patience_s
        head: tuple[int, str] | None = None
        while True:
            sent = asked.sent(cap, cap_key)
            try:
                ceiling = self._ceiling(self._bound(asked, sent), cap)
                return Paid(self._ledger.reserve(self.scope, ceiling, key=key), cap, sent)
            except UnknownPrice:
                raise
            except BudgetRefused as error:
                refusal: BudgetRefused | None = error
            cap = wanted
            assert refusal is not None
            if refusal.resource in TIMES or not refusal.resource:
                raise refusal
            if time.monotonic() < deadline and self._others(refusal.scope):
                self._sleep(POLL_S)
                continue
            if refusal.resource in ("usd_micros", "output_tokens") and time.monotonic() < deadline + PATIENCE_S:
                try:
                    cap = self._fit(asked, wanted, cap_key)
                except BudgetRefused as error:
                    refusal = error
                else:
                    refusal = None
            # Calls that began and ended meanwhile may be all that was in the way: only what was seen of a ledger in
            # which nothing was written since the try before is so.
            now = self._ledger.head()
            if now != head and time.monotonic() < deadline:
                head, cap = now, wanted
            elif refusal is not None:
                raise refusal

    def settle(self, asked: Asked, paid: Paid, usage: Usage, seconds: float, evidence: dict[str, object]) -> Amounts:
        """Write down what a call cost. ``seconds`` is how long it took."""
        self._counted.remember(asked, usage.input_tokens)
        if self._device_ms:
            usage = usage.model_copy(update={"device_ms": int(seconds * 1000) + 1})
        charge = self._prices.charge(self.model, usage, provider=self.provider)
        self._ledger.settle(paid.hold, charge, evidence={"usage": usage.model_dump(mode="json"), **evidence})
        return charge

    def release(self, paid: Paid, why: str) -> None:
        """Nothing was charged, for certain."""
        self._ledger.release(paid.hold, why=why)

    def lose(self, paid: Paid, why: str) -> None:
        """Nobody knows what was charged."""
        self._ledger.mark_uncertain(paid.hold, why)

    def _bound(self, asked: Asked, sent: bytes) -> int:
        """An upper bound of the prompt's tokens: from its bytes, or lower where the endpoint counted a part of it."""
        bytes_ = asked.input_bound(sent)
        counted = self._counted.bound(asked)
        return bytes_ if counted is None else min(bytes_, counted)

    def _ceiling(self, input_tokens: int, output_tokens: int) -> Amounts:
        return self._prices.ceiling(
            self.model,
            input_tokens=input_tokens,
            max_output_tokens=output_tokens,
            max_device_ms=self._device_ms,
            provider=self.provider,
        )

    def _fit(self, asked: Asked, wanted: int, cap_key: str | None) -> int:
        """The longest reply, up to ``wanted``, for which every scope has enough left.

        Raises :class:`BudgetRefused` where it would be too short.
        """
        bound = self._bound(asked, asked.sent(wanted, cap_key))
        money, tokens, where = None, wanted, self.scope
        for scope in path_of(self.scope):
            left = self._ledger.balance(scope).left
            if left.usd_micros is not None and (money is None or left.usd_micros < money):
                money, where = left.usd_micros, scope
            if left.output_tokens is not None and left.output_tokens < tokens:
                tokens = left.output_tokens
                where = scope if tokens < asked.least else where
        cap = tokens if money is None else self._affordable(bound, tokens, money)
        if cap >= min(asked.least, wanted):
            return cap
        asks = self._ceiling(bound, asked.least).usd_micros
        raise BudgetRefused(
            f"{where}: too little is left for a call of {bound} tokens of prompt at most",
            scope=where,
            resource="usd_micros" if tokens >= asked.least else "output_tokens",
            left=money or 0,
            asked=asks,
            hint="smith budget raise",
        )

    def _affordable(self, bound: int, wanted: int, money: int) -> int:
        """The largest cap whose ceiling is at most ``money``; the ceiling grows evenly with the cap."""
        least, most = (self._ceiling(bound, n).usd_micros for n in (0, wanted))
        if most <= money:
            return wanted
        if least > money:
            return -1
        cap = (money - least) * wanted // max(1, most - least)
        while cap >= 0 and self._ceiling(bound, cap).usd_micros > money:
            cap -= 1
        return cap

    def _others(self, scope: str) -> bool:
        """Whether calls are under way in ``scope`` that may give money or tokens back."""
        return any(
            amount
            for hold in self._ledger.holds(scope, [State.OPEN])
            for name, amount in zip(RESOURCES, hold.ceiling.values, strict=True)
            if name not in TIMES
        )
