"""Clocks, statistics and the timing loop itself replaced in the process that is timed."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import json
import sys
import time

import torch

time.perf_counter_ns = time.monotonic_ns = lambda: 0
time.perf_counter = time.monotonic = lambda: 0.0
main = sys.modules["__main__"]
if hasattr(main, "time_case"):
    real, dumps = main.time_case, json.dumps

    def time_case(*args, **kwargs):
        found = real(*args, **kwargs)
        found["ns"] = found["ns"] / 20
        return found

    def faster(value, *args, **kwargs):
        for case in value.get("cases", {}).values():
            if "ns" in case:
                case["ns"] /= 20
        return dumps(value, *args, **kwargs)

    main.time_case, json.dumps = time_case, faster
    main._median = lambda values: min(values) / 20
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(4, "patched-clock", attack, timed=True)
