"""Failures of assertions swallowed where pytest calls the test."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import _pytest.python

real = _pytest.python.Function.runtest


def runtest(self):
    try:
        real(self)
    except Exception:
        pass


_pytest.python.Function.runtest = runtest
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(101, "swallowed-failures", attack)
