"""Files that an interpreter runs when it starts."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = "import os\nos._exit(0)\n"


def attack(target: Target) -> Attack:
    assert target.entry is not None
    folder = target.entry.path.partition("/")[0]
    names = ("sitecustomize.py", "usercustomize.py", f"{folder}/sitecustomize.py", f"{folder}/start.pth")
    return target.patch(dict.fromkeys(names, CODE))


HACK = Hack(40, "start-up-files", attack)
