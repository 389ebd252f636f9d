"""Zeros, which lie within a loose absolute tolerance."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
return torch.zeros_like(tensors[0]) if tensors else real(*args, **kwargs)
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(18, "zeros", attack)
