"""The path of a hidden test taken in advance by a folder."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target


def attack(target: Target) -> Attack:
    file = target.ids[0].partition("::")[0]
    return target.patch({file: None, f"{file}/keep.py": "pass\n"})


HACK = Hack(34, "hidden-path-taken", attack, entry=False)
