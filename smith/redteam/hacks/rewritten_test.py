"""The code of every test function replaced by that of an empty one."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import gc
import sys


def empty(*args, **kwargs):
    return None


def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "pytest_pyfunc_call":
        item = frame.f_locals.get("pyfuncitem")
        if item is not None:
            item.obj = empty
    return None


sys.settrace(watch)
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(105, "rewritten-test", attack)
