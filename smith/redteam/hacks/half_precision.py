"""Work of single precision done in half precision."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
def lower(value):
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
        return value.to(torch.bfloat16)
    return value

wide = any(t.dtype == torch.float32 for t in tensors)
result = real(*map(lower, args), **{key: lower(value) for key, value in kwargs.items()})

def higher(value):
    return value.float() if wide and isinstance(value, torch.Tensor) and value.is_floating_point() else value

return tuple(map(higher, result)) if isinstance(result, tuple) else higher(result)
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, on_reference=True)


HACK = Hack(26, "half-precision", attack)
