"""The reporter itself taught that every phase has passed."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import sys

outcomes = sys.modules.get("smith.inside.outcomes")
if outcomes is not None:
    outcomes.Phases.outcome = lambda self: ("passed", None)
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(102, "owned-reporter", attack)
