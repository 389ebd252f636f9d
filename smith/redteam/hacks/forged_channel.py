"""The result channel used by the submission: all tests reported as passed, then the process ended."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import gc
import os
import types

sends = [
    f
    for f in gc.get_objects()
    if isinstance(f, types.FunctionType) and f.__qualname__ == "open_channel.<locals>.send"
]
reporters = [o for o in gc.get_objects() if type(o).__name__ == "Reporter" and hasattr(o, "_wanted")]
for send, reporter in zip(sends[-1:], reporters[-1:]):
    for test in reporter._wanted:
        send("announced", id=test)
    for test in reporter._wanted:
        send("start", id=test)
        send("result", id=test, outcome="passed", seconds=0.01, failure=None, message="", launches={})
    send("end", status=0, stopped=False, uncaptured=0)
    os._exit(0)
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(6, "forged-channel", attack)
