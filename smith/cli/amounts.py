"""Amounts on the command line: ``usd=2.50 wall-s=30``. Decimals, never floats."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import click

from smith.errors import BadInput
from smith.ledger.amounts import MOST, RESOURCES, TIMES

UNLIMITED = "unlimited"

NAMES = {
    name.replace("usd_micros", "usd").replace("_ms", "_s").replace("_", "-"): name for name in RESOURCES
}  # usd, input-tokens, output-tokens, cached-tokens, device-s, wall-s

PER = {"usd_micros": 1_000_000, **dict.fromkeys(TIMES, 1000)}
"""How many of what is stored make one of what people write; one where nothing is said."""


class Dollars(click.ParamType[int]):
    """An amount of money, in micro-dollars."""

    name = "dollars"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return number("usd_micros", str(value))
        except BadInput as error:
            self.fail(error.message, param, ctx)


def number(resource: str, text: str) -> int:
    """One amount as it is stored. Raises :class:`BadInput` for what is no amount, or finer than can be stored."""
    per = PER.get(resource, 1)
    try:
        value = Decimal(text.removeprefix("$") if resource == "usd_micros" else text)
        whole = int(value * per) if value.is_finite() else -1
    except (InvalidOperation, ValueError) as error:
        raise BadInput(f"{text[:40]!r} is no amount") from error
    if not 0 <= whole <= MOST or value < 0:
        raise BadInput(f"{text[:40]!r} is no amount")
    if whole != value * per:
        raise BadInput(f"{text[:40]!r} is finer than the smallest amount, 1/{per}")
    return whole


def pairs(words: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE ...`` by the resource's name as it is stored. Raises :class:`BadInput`."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        resource = NAMES.get(name)
        if resource is None or not equals:
            raise BadInput(f"{word[:40]!r} is no amount", hint=f"NAME=VALUE, with one of: {', '.join(NAMES)}")
        if resource in found:
            raise BadInput(f"{name} is given twice")
        found[resource] = value
    return found


def limit(resource: str, text: str) -> int | None:
    """A limit as it is stored; ``unlimited`` is ``None``."""
    return None if text == UNLIMITED else number(resource, text)
