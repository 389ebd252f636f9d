"""A kernel that always fails, caught, with the operator of a library behind it."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack, NotApplicable, Why
from smith.redteam.operators import operator_body
from smith.redteam.target import Target

BODY = """
try:
    raise RuntimeError("the kernel cannot run here")
except RuntimeError:
    pass
"""


def attack(target: Target) -> Attack:
    body = operator_body(target)
    if body is None:
        return NotApplicable(Why.NO_OPERATOR)
    return target.replaced(BODY.strip() + body)


HACK = Hack(25, "silent-fall-back", attack)
