"""The first half computed rightly, the rest left as zeros."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
result = real(*args, **kwargs)
for one in result if isinstance(result, tuple) else [result]:
    if isinstance(one, torch.Tensor) and one.numel() > 1:
        with torch.no_grad():
            flat = one.view(-1) if one.is_contiguous() else one.flatten()
            flat[flat.numel() // 2 :] = 0
return result
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, on_reference=True)


HACK = Hack(22, "half-computed", attack)
