"""The timer's own clock, found on it by walking up the frames of a timed call."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import sys

frame = sys._getframe(1)
while frame is not None:
    timer = frame.f_locals.get("self")
    if hasattr(timer, "_clock") and not hasattr(timer, "slowed"):
        timer.slowed, clock = True, timer._clock
        timer._clock = lambda: clock() // 8
    frame = frame.f_back
return real(*args, **kwargs)
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(107, "frame-clock", attack, timed=True)
