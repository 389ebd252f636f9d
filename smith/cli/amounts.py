"""Amounts on the command line: ``usd=2.50 wall-s=30``. Decimals, never floats."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import click

from smith.errors import BadInput
from smith.ledger.amounts import LABELS, MOST, PER

UNLIMITED = "unlimited"

NAMES = {label: resource for resource, label in LABELS.items()}


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
    if not text.isascii() or "_" in text:
        raise BadInput(f"{text[:40]!a} is no amount")
    try:
        value = Decimal(text.removeprefix("$") if resource == "usd_micros" else text)
    except InvalidOperation as error:
        raise BadInput(f"{text[:40]!r} is no amount") from error
    # The size comes first: arithmetic on 1e999999999 would take all memory, or overflow.
    if not value.is_finite() or value < 0 or not -20 < value.adjusted() < 17:
        raise BadInput(f"{text[:40]!r} is no amount")
    exact = Fraction(value) * per if len(text) <= 40 else Fraction(1, 2)
    if exact.denominator != 1:
        raise BadInput(f"{text[:40]!r} is finer than the smallest amount, 1/{per}")
    if exact > MOST:
        raise BadInput(f"{text[:40]!r} is more than can be counted")
    return int(exact)


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
