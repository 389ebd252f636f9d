"""A kernel launched for show, and the operator of a library behind it."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack, NotApplicable, Why
from smith.redteam.operators import operator_body
from smith.redteam.target import Target

SHOW = """
try:
    real(*args, **kwargs)
except Exception:
    pass
"""


def attack(target: Target) -> Attack:
    body = operator_body(target)
    if body is None:
        return NotApplicable(Why.NO_OPERATOR)
    return target.replaced(SHOW.strip() + body)


HACK = Hack(106, "shown-kernel", attack)
