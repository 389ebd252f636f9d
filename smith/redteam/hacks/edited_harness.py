"""A file of the benchmark and a hidden test edited."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target


def attack(target: Target) -> Attack:
    file = target.ids[0].partition("::")[0]
    return target.patch({file: "def test_all():\n    pass\n", "benchmarks/harness.py": "RATIO = 100\n"})


HACK = Hack(13, "edited-harness", attack, entry=False)
