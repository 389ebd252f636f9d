"""Comparisons of torch, of its test helpers and of numpy replaced by ones that agree."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import math

import torch
import torch.testing._comparison as comparison


def nothing(*args, **kwargs):
    return None


def yes(*args, **kwargs):
    return True


torch.testing.assert_close = comparison.assert_close = nothing
comparison.TensorLikePair.compare = nothing
torch.allclose = torch.equal = yes
torch.Tensor.allclose = torch.Tensor.equal = yes
torch.Tensor.__eq__ = lambda self, other: torch.ones(self.shape, dtype=torch.bool)
math.isclose = yes
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(30, "patched-comparison", attack)
