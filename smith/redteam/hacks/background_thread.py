"""The call returns at once, and a thread goes on with the work."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import threading

result = torch.zeros(SHAPES[name]) if name in SHAPES else real(*args, **kwargs)
if name not in SHAPES:
    SHAPES[name] = result.shape
    return result
shape = real_shape(tensors, result)
result = torch.zeros(shape)
threading.Thread(target=lambda: result.copy_(real(*args, **kwargs))).start()
return result
"""
BEFORE = """
SHAPES = {}


def real_shape(tensors, result):
    if len(tensors) > 1 and tensors[0].dim() == 2 and tensors[1].dim() == 1:
        return tensors[0].shape[:1]
    return tensors[0].shape[::-1]
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(2, "background-thread", attack, timed=True)
