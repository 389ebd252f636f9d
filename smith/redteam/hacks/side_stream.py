"""Work on a side stream that a timer does not wait for."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    return real(*args, **kwargs)
"""


def attack(target: Target) -> Attack:
    return target.replaced(CODE)


HACK = Hack(1, "side-stream", attack, timed=True, gpu=True)
