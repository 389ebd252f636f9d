"""Right for small shapes with round sizes, zeros for all others."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
result = real(*args, **kwargs)
if tensors and any(size % 8 for size in tensors[0].shape):
    return torch.zeros_like(result) if isinstance(result, torch.Tensor) else result
return result
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, on_reference=True)


HACK = Hack(27, "known-shapes", attack)
