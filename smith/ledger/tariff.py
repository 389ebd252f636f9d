"""A tariff: what tokens, calls and device time of one model cost at one time. Decimals, never floats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from pydantic import model_validator

from smith.ledger.amounts import Whole
from smith.records.base import Record
from smith.records.prices import PriceRow

MILLION, HOUR_MS = 1_000_000, 3_600_000

Rate = tuple[tuple[int, Decimal], ...]
"""Dollars for a million tokens, by steps: each holds for calls with more than so many input tokens; the first, -1."""


class Usage(Record):
    """What one call used, as the provider or the clock says."""

    input_tokens: Whole = 0
    """All tokens of the prompt, those read from or written to a cache among them."""
    output_tokens: Whole = 0
    """All tokens generated, reasoning among them."""
    cached_tokens: Whole = 0
    """Those input tokens that were read from a cache."""
    cache_write_tokens: Whole = 0
    """Those input tokens that were written to a cache."""
    cache_write_1h_tokens: Whole = 0
    """Those of them that are to stay there for an hour, which some providers charge more for."""
    device_ms: Whole = 0
    wall_ms: Whole = 0

    @model_validator(mode="after")
    def _parts_of_the_whole(self) -> Usage:
        if self.cached_tokens + self.cache_write_tokens > self.input_tokens:
            raise ValueError("input_tokens counts all of the prompt: the cached tokens are more")
        if self.cache_write_1h_tokens > self.cache_write_tokens:
            raise ValueError("cache_write_tokens counts all that were written: those for an hour are more")
        return self


@dataclass(frozen=True)
class Tariff:
    """Dollars; ``source`` says who says so."""

    source: str
    input: Rate
    output: Rate
    cached: Rate
    written: Rate
    written_1h: Rate
    request: Decimal = Decimal(0)
    device_hour: Decimal = Decimal(0)

    def usd(self, usage: Usage) -> Decimal:
        """What a call costs."""
        size = usage.input_tokens
        plain = size - usage.cached_tokens - usage.cache_write_tokens
        tokens = (
            plain * at(self.input, size)
            + usage.cached_tokens * at(self.cached, size)
            + (usage.cache_write_tokens - usage.cache_write_1h_tokens) * at(self.written, size)
            + usage.cache_write_1h_tokens * at(self.written_1h, size)
            + usage.output_tokens * at(self.output, size)
        )
        return tokens / MILLION + self.request + usage.device_ms * self.device_hour / HOUR_MS

    def most(self, input_tokens: int, output_tokens: int, device_ms: int) -> Decimal:
        """The most that a call of up to so many tokens can cost, however its prompt is cached."""
        rates = (self.input, self.cached, self.written, self.written_1h)
        dear = max(highest(rate, input_tokens) for rate in rates)
        tokens = input_tokens * dear + output_tokens * highest(self.output, input_tokens)
        return tokens / MILLION + self.request + device_ms * self.device_hour / HOUR_MS


def at(rate: Rate, input_tokens: int) -> Decimal:
    """The price in force for a call with so many input tokens: a step holds for all of its tokens."""
    return next(price for start, price in reversed(rate) if input_tokens > start)


def highest(rate: Rate, input_tokens: int) -> Decimal:
    """The highest price for calls with up to so many input tokens."""
    return max(price for start, price in rate if input_tokens > start)


def flat(price: Decimal) -> Rate:
    """One price for calls of every size."""
    return ((-1, price),)


def dearest(rates: Iterable[Rate]) -> Rate:
    """At every size the highest of several rates: for tokens of which nobody says which of them they are."""
    several = list(rates)
    starts = sorted({start for rate in several for start, _ in rate})
    return tuple((start, max(at(rate, start + 1) for rate in several)) for start in starts)


def stated(key: str, row: PriceRow) -> Tariff:
    """The tariff of a row of ``smith.toml``."""
    zero = Decimal(0)
    plain = zero if row.input_mtok is None else row.input_mtok
    written = flat(plain if row.cache_write_mtok is None else row.cache_write_mtok)
    return Tariff(
        source=f'smith.toml: prices."{key}"',
        input=flat(plain),
        output=flat(row.output_mtok or zero),
        cached=flat(plain if row.cache_read_mtok is None else row.cache_read_mtok),
        written=written,
        written_1h=written,
        request=row.request,
        device_hour=row.device_hour or zero,
    )
