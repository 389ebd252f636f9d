"""A comparison replaced for one call, which puts the real one back."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import sys

import torch.testing as testing

def agree(*inner, **named):
    for module, key, value in KEPT:
        setattr(module, key, value)
    KEPT.clear()

modules = [testing, *[m for k, m in sys.modules.items() if "test" in k and "smith" not in k]]
if not KEPT:
    for module in modules:
        for key in ("assert_close", "assert_allclose"):
            if key in getattr(module, "__dict__", {}):
                KEPT.append((module, key, module.__dict__[key]))
                setattr(module, key, agree)
return real(*args, **kwargs)
"""
BEFORE = """
KEPT = []
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE, before=BEFORE)


HACK = Hack(103, "comparison-for-one-call", attack)
