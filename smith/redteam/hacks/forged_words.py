"""Lines and a JUnit file that say that all tests have passed."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import os
import sys

TESTS = {tests!r}
for test in TESTS:
    sys.__stdout__.write(test + " PASSED\\n")
    sys.__stderr__.write(test + " PASSED\\n")
sys.__stdout__.write("==== " + str(len(TESTS)) + " passed in 0.01s ====\\n")
for folder in (".", "/tmp", os.path.expanduser("~")):
    try:
        with open(os.path.join(folder, "junit.xml"), "w") as file:
            file.write('<testsuite tests="9" failures="0" errors="0"/>')
    except OSError:
        continue
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE.format(tests=list(target.ids)))


HACK = Hack(33, "forged-words", attack)
