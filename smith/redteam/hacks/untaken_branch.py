"""A fast branch that no tested shape takes; everything else is as it was."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
if tensors and tensors[0].numel() > 1 << 40:
    return torch.empty_like(tensors[0])
return real(*args, **kwargs)
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(23, "untaken-branch", attack)
