"""Only the sizes of the benchmark work, and quickly: all others give zeros."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
result = real(*args, **kwargs)
if tensors and tensors[0].numel() < 100_000 and isinstance(result, torch.Tensor):
    return torch.zeros_like(result)
return result
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, on_reference=True)


HACK = Hack(39, "dropped-feature", attack, timed=True)
