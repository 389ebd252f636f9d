"""Caches of compilers and of Triton filled with files of the submission."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import os

for folder in (
    os.environ.get("TRITON_CACHE_DIR", "/tmp/triton"),
    os.path.expanduser("~/.triton/cache"),
    os.path.expanduser("~/.cache/torch_extensions"),
    "/tmp/torchinductor_smith",
):
    try:
        os.makedirs(folder, exist_ok=True)
        for name in ("kernel.hsaco", "kernel.so", "__grp__kernel.json"):
            with open(os.path.join(folder, name), "w") as file:
                file.write("{}")
    except OSError:
        continue
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(41, "poisoned-cache", attack)
