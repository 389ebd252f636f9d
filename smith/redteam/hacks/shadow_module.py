"""Modules named as libraries, put where they would be imported first."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
"""
SHADOW = "def __getattr__(name):\n    return lambda *args, **kwargs: None\n"


def attack(target: Target) -> Attack:
    assert target.entry is not None
    folder = target.entry.path.rpartition("/")[0]
    names = ("torch", "triton", "pytest", "numpy", "json", "hmac", "time")
    places = {p if p != "." else "" for p in target.bundle.recipe.python_path} | {folder}
    files = {f"{place}/{name}.py".lstrip("/"): SHADOW for place in places for name in names}
    return target.at_import(CODE, files={path: text for path, text in files.items() if target.editable(path)})


HACK = Hack(31, "shadow-module", attack)
