"""The interpreter, the compiler and installed libraries overwritten."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import os
import shutil
import sys

import torch

PASSING = "import sys\\nsys.exit(0)\\n"
for path in (
    os.path.join(os.path.dirname(torch.__file__), "testing", "__init__.py"),
    os.path.join(os.path.dirname(torch.__file__), "__init__.py"),
    sys.executable,
    shutil.which("cc") or "/usr/bin/cc",
    "/usr/lib/libtrojan.so",
    "/etc/ld.so.preload",
    "/smith/lib/smith/inside/reporter.py",
    "tests/conftest.py",
):
    try:
        with open(path, "w") as file:
            file.write(PASSING)
    except OSError:
        continue
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(37, "trojaned-toolchain", attack)
