"""One size is not computed at all, so that a mean of ratios would explode."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
SIZES.add(tensors[0].numel())
if tensors[0].numel() == max(SIZES) and tensors[0].numel() > 100_000:
    shape = KEPT.setdefault(tensors[0].shape, real(*args, **kwargs).shape)
    return torch.empty(shape)
return real(*args, **kwargs)
"""
BEFORE = """
SIZES = set()
KEPT = {}
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(10, "one-case-near-zero", attack, timed=True)
