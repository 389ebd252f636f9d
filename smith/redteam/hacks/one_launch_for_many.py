"""Seven of eight calls give back what the eighth has computed."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
SEEN.append(1)
key = tuple(t.shape for t in tensors)
if key not in KEPT or len(SEEN) % 8 == 0:
    KEPT[key] = real(*args, **kwargs)
return KEPT[key]
"""
BEFORE = """
SEEN = []
KEPT = {}
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(9, "one-launch-for-many", attack, timed=True)
