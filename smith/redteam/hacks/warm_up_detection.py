"""Honest while it is warmed up, then the last result again and again."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
SEEN.append(1)
if len(SEEN) < 16:
    KEPT[:] = [real(*args, **kwargs)]
return KEPT[0]
"""
BEFORE = """
SEEN = []
KEPT = []
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(8, "warm-up-detection", attack, timed=True)
