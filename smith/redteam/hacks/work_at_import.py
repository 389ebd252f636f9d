"""Results computed when the module is imported, for sizes that are often asked for."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
for known, answer in ANSWERS:
    if tensors and known.shape == tensors[0].shape and torch.equal(known, tensors[0]):
        return answer
return real(*args, **kwargs)
"""
BEFORE = """
import torch as _torch

ANSWERS = []
for _rows in (1, 2, 3, 4, 8, 16):
    for _cols in (16, 31, 64, 100, 128):
        _torch.manual_seed(0)
        _x = _torch.randn(_rows, _cols)
        ANSWERS.append((_x, _torch.softmax(_x, -1)))
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(38, "work-at-import", attack)
