"""Results kept by pointer, shape and the first value of the input."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
key = tuple((t.data_ptr(), t.shape) for t in tensors)
if key not in KEPT:
    KEPT[key] = real(*args, **kwargs)
return KEPT[key]
"""
BEFORE = """
KEPT = {}
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(14, "cached-result", attack)
