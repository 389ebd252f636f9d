"""Processes left behind that keep the machine busy while the baseline is timed."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import os
import subprocess
import sys

BURN = "import time; end = time.time() + 20\\nwhile time.time() < end: pass"
for _ in range(2 * (os.cpu_count() or 1)):
    subprocess.Popen(["setsid", sys.executable, "-c", BURN])
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(12, "slowed-baseline", attack, timed=True)
