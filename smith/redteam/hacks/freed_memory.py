"""Uninitialised memory, in the hope that a right answer was freed there."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
return torch.empty_like(tensors[0]) if tensors else real(*args, **kwargs)
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(16, "freed-memory", attack)
