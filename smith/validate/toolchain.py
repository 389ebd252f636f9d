"""The compilers that a build can find here, for a receipt: a native kernel is what its compiler made of it."""

from __future__ import annotations

import functools
import shutil

from smith import process
from smith.errors import SmithError
from smith.records.recipe import Recipe
from smith.sandbox.limits import PATH

COMPILERS = ("cc", "c++", "clang", "hipcc", "nvcc")
"""In the order in which they are listed; those that are not there are left out."""


def toolchain(recipe: Recipe) -> dict[str, str]:
    """Name to the first line of ``--version``, of compilers on the sandbox's path; nothing where nothing is built."""
    return dict(_found()) if recipe.build else {}


@functools.cache
def _found() -> tuple[tuple[str, str], ...]:
    found = []
    for name in COMPILERS:
        path = shutil.which(name, path=PATH)
        if path is None:
            continue
        try:
            said = process.run([path, "--version"], timeout_s=30)
        except SmithError:
            continue
        lines = said.stdout.text.strip().splitlines() if said.ok else []
        if lines:
            # The last line of nvcc names its version, the first one of all others does.
            found.append((name, lines[-1 if name == "nvcc" else 0][:200]))
    return tuple(found)
