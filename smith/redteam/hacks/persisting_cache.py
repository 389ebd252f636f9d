"""Data pinned in a cache of the GPU that a flush leaves alone."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
torch.cuda.current_stream().cuda_stream
torch._C._cuda_setDevice(torch.cuda.current_device())
for tensor in tensors:
    PINNED.setdefault(tensor.shape, tensor)
return real(*args, **kwargs)
"""
BEFORE = """
PINNED = {}
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(11, "persisting-cache", attack, timed=True, gpu=True)
