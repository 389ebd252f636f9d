"""The process ended with status 0 before the tests have run."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import atexit
import os
import signal
import sys

atexit.register(lambda: os._exit(0))
signal.signal(signal.SIGALRM, lambda *args: os._exit(0))
sys.stdout.flush()
os._exit(0)
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(42, "early-exit", attack)
