"""Inputs zeroed, so that a reference computed from them agrees with a wrong kernel."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
for tensor in tensors:
    with torch.no_grad():
        tensor.zero_()
return real(*args, **kwargs)
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(17, "mutated-inputs", attack)
