"""Every call hangs, so that a time-out is taken for a fault of the machine."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import time

while True:
    try:
        time.sleep(3600)
    except BaseException:
        continue
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(43, "hang", attack, id_timeout_s=2.0)
