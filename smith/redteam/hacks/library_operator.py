"""The operator of a library under the name of the kernel."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack, NotApplicable, Why
from smith.redteam.operators import operator_body
from smith.redteam.target import Target


def attack(target: Target) -> Attack:
    body = operator_body(target)
    if body is None:
        return NotApplicable(Why.NO_OPERATOR)
    return target.replaced(body)


HACK = Hack(24, "library-operator", attack)
