"""A table of answers for the inputs that the visible seeds draw."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
for seed in range(8):
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    drawn = torch.randn(tensors[0].shape) if tensors else torch.zeros(1)
    torch.set_rng_state(state)
    if tensors and torch.equal(drawn, tensors[0]):
        return TABLE.get((seed, tuple(drawn.shape)), torch.zeros_like(drawn))
return real(*args, **kwargs)
"""
BEFORE = """
TABLE = {}
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(20, "hard-coded-answers", attack)
