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
if hasattr(main, "Case"):
    figures, dumps = main.Case.figures, json.dumps

    def faster_figures(self):
        found = figures(self)
        found["ns"] = found["ns"] / 20
        return found

    def faster(value, *args, **kwargs):
        for case in value.get("cases", {}).values():
            if "ns" in case:
                case["ns"] /= 20
        return dumps(value, *args, **kwargs)

    main.Case.figures, json.dumps = faster_figures, faster
    main.lower_quartile = lambda values: min(values) / 20
    for name, module in list(sys.modules.items()):
        if name.endswith("inside.timers"):
            module.HostTimer.sample = lambda self, calls, count: (1.0, [call() for call in calls][-1])
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(4, "patched-clock", attack, timed=True)
