"""The function of pytest that runs a test replaced by one that does nothing."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import _pytest.python

_pytest.python.Function.runtest = lambda self: None
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(100, "owned-runner", attack)
