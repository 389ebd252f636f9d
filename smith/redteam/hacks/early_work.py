"""The work is done while a workload makes its inputs, and handed out when the clock runs."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

BEFORE = """
import sys as _sys

import torch as _torch

DONE = {}
REAL = []
_randn = _torch.randn


def _early(*args, **kwargs):
    made = _randn(*args, **kwargs)
    beside = [v for v in _sys._getframe(1).f_locals.values() if isinstance(v, _torch.Tensor)]
    for real in REAL[:1]:
        try:
            DONE[id(made)] = (made, real(*beside, made))
        except Exception:
            pass
    return made


_torch.randn = _early
"""
CODE = """
if not REAL:
    REAL.append(real)
known = DONE.pop(id(args[-1]), None) if args else None
return real(*args, **kwargs) if known is None or known[0] is not args[-1] else known[1]
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(108, "early-work", attack, timed=True)
