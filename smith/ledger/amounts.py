"""What is counted, always in whole numbers: micro-dollars, tokens, milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Annotated, Self

from pydantic import Field

from smith.records.base import Record

RESOURCES = ("usd_micros", "input_tokens", "output_tokens", "cached_tokens", "device_ms", "wall_ms")
"""In the order in which they are stored and hashed."""

TIMES = frozenset({"device_ms", "wall_ms"})
"""Measured after the fact, so that only a kill bounds them; see docs/budget.md."""

LABELS = dict(
    zip(RESOURCES, ("usd", "input-tokens", "output-tokens", "cached-tokens", "device-s", "wall-s"), strict=True)
)
"""What people call them, with the unit in which they write them."""

PER = {"usd_micros": 1_000_000, **dict.fromkeys(TIMES, 1000)}
"""How many of what is stored make one of what people write; one where nothing is said."""

MOST = 2**53 - 1
"""The largest amount and the largest sum: nine thousand million dollars, exact in every reader of JSON."""

Whole = Annotated[int, Field(strict=True, ge=0, le=MOST)]


class Amounts(Record):
    """So much of each resource."""

    usd_micros: Whole = 0
    """Millionths of a dollar."""
    input_tokens: Whole = 0
    """Tokens of prompts, those read from a provider's cache among them."""
    output_tokens: Whole = 0
    """Tokens generated, reasoning among them."""
    cached_tokens: Whole = 0
    """Those input tokens that were read from a provider's cache."""
    device_ms: Whole = 0
    """Milliseconds for which a device was held."""
    wall_ms: Whole = 0
    """Milliseconds by the clock on the wall."""

    @classmethod
    def of(cls, values: Sequence[int]) -> Self:
        """From numbers in the order of :data:`RESOURCES`."""
        return cls(**dict(zip(RESOURCES, values, strict=True)))

    @property
    def values(self) -> tuple[int, ...]:
        """The numbers in the order of :data:`RESOURCES`."""
        return tuple(getattr(self, name) for name in RESOURCES)

    def beyond(self, other: Amounts) -> tuple[str, ...]:
        """The resources of which there is more here than in ``other``."""
        mine, theirs = self.values, other.values
        return tuple(name for name, a, b in zip(RESOURCES, mine, theirs, strict=True) if a > b)


class Limits(Record):
    """The most of each resource; ``None`` is without limit."""

    usd_micros: Whole | None = None
    input_tokens: Whole | None = None
    output_tokens: Whole | None = None
    cached_tokens: Whole | None = None
    device_ms: Whole | None = None
    wall_ms: Whole | None = None

    @classmethod
    def of(cls, values: Sequence[int | None]) -> Self:
        """From numbers in the order of :data:`RESOURCES`."""
        return cls(**dict(zip(RESOURCES, values, strict=True)))

    @property
    def values(self) -> tuple[int | None, ...]:
        """The numbers in the order of :data:`RESOURCES`."""
        return tuple(getattr(self, name) for name in RESOURCES)


def micros(usd: Decimal, *, up: bool) -> int:
    """Dollars as micro-dollars. What is charged or held is rounded up, what is allowed is rounded down."""
    return int((usd * 1_000_000).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))


def dollars(usd_micros: int) -> str:
    """``$0.000001``: exact, with two to six decimals."""
    whole, rest = divmod(abs(usd_micros), 1_000_000)
    digits = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{'-' if usd_micros < 0 else ''}${whole:,}.{digits}"


def written(resource: str, value: int | None) -> str:
    """An amount as people give it on the command line, exactly."""
    return "unlimited" if value is None else f"{Decimal(value) / PER.get(resource, 1):f}"


def shown(resource: str, value: int) -> str:
    """An amount for people, with its unit."""
    if resource == "usd_micros":
        return dollars(value)
    if resource in TIMES:
        return f"{value / 1000:,.3f} s"
    return f"{value:,}"
