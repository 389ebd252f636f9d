"""A constant that does not depend on the input."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
return torch.full_like(tensors[0], 1) if tensors else real(*args, **kwargs)
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(19, "constant", attack)
