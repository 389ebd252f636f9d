"""What ROCm/aiter needs before it can be imported where nothing of it was compiled.

Run in the root of the source tree, after the interpreter device is installed.

- Its extension builder looks for a ROCm installation and reads its version: an empty one is made in a temporary folder.
- It copies Composable Kernel and builds into its own tree: both are pointed at the temporary folder.
- Enumerations that its Python code reads at import time come from a compiled module: they are read from the headers.
- Any other compiled module is refused by name, so that a test of a HIP kernel is told from a failing one.
"""

from __future__ import annotations

import atexit
import enum
import os
import re
import shutil
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from smith.device.interpreter import NotInterpretable, installed

HIP_VERSION = "6.4.43482-0f2d60242"
ENUM_MODULES = ("module_aiter_enum", "module_aiter_core")
HEADERS = ("csrc/include/*.h", "csrc/include/*.hpp", "csrc/include/*.cuh")
FALLBACK = {
    "ActivationType": {"No": -1, "Silu": 0, "Gelu": 1, "Swiglu": 2},
    "QuantType": {"No": 0, "per_Tensor": 1, "per_Token": 2, "per_1x32": 3, "per_1x128": 4, "per_128x128": 5},
}
"""For commits whose headers do not spell an enumeration out in one place."""

_ENUM = re.compile(r"enum\s+class\s+(\w+)\s*:\s*\w+\s*\{([^}]*)\}")


def enumerations() -> dict[str, dict[str, int]]:
    """The scoped enumerations of the tree's headers, by name; those with computed values are left out."""
    found = dict(FALLBACK)
    for pattern in HEADERS:
        for header in sorted(Path.cwd().glob(pattern)):
            text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(errors="replace"), flags=re.DOTALL)
            for name, body in _ENUM.findall(text):
                members = _members(body)
                if members:
                    found[name] = members
    return found


def _members(body: str) -> dict[str, int] | None:
    members: dict[str, int] = {}
    value = -1
    for entry in filter(None, (part.strip() for part in body.split(","))):
        name, _, literal = (part.strip() for part in entry.partition("="))
        try:
            value = int(literal, 0) if literal else value + 1
        except ValueError:
            return None
        members[name] = value
    return members


def _constructor(kind: Any) -> Any:
    """Stands for the bound enumeration: called with anything it answers with a member, as upstream's code asks for."""

    def make(*_: Any, **__: Any) -> Any:
        return next(iter(kind))

    make.__doc__ = "Members:"
    return make


def install_enumerations() -> None:
    """Put modules with the enumerations where upstream looks for compiled ones."""
    kinds = {name: enum.IntEnum(name, members) for name, members in enumerations().items()}
    for name in ENUM_MODULES:
        for qualified in (name, f"aiter.jit.{name}"):
            module = types.ModuleType(qualified)
            module.__file__ = __file__
            for kind_name, kind in kinds.items():
                setattr(module, kind_name, _constructor(kind))
            sys.modules[qualified] = module


class CompiledModules:
    """Refuses the import of a compiled module of aiter that nobody compiled."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        short = name.removeprefix("aiter.jit.")
        if short.startswith("module_") and (short != name or path is None):
            raise NotInterpretable(f"aiter's compiled extension {short!r}")


def install_toolkit() -> None:
    """An empty ROCm installation, and folders for what upstream copies and builds."""
    folder = Path(tempfile.mkdtemp(prefix="smith-aiter-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("rocm/.info", "rocm/bin", "ck", "build"):
        (folder / name).mkdir(parents=True)
    (folder / "rocm/.info/version").write_text(f"{HIP_VERSION}\n")
    hipconfig = folder / "rocm/bin/hipconfig"
    hipconfig.write_text(f"#!/bin/sh\necho {HIP_VERSION}\n")
    hipconfig.chmod(0o755)
    os.environ["PATH"] = os.pathsep.join([str(folder / "rocm/bin"), os.environ.get("PATH", os.defpath)])
    os.environ["ROCM_HOME"] = os.environ["ROCM_PATH"] = str(folder / "rocm")
    os.environ["CK_DIR"] = str(folder / "ck")
    os.environ["JIT_WORKSPACE_DIR"] = os.environ["AITER_JIT_DIR"] = str(folder / "build")
    target = installed()
    os.environ["GPU_ARCHS"] = target.arch if target is not None else "gfx942"


install_toolkit()
install_enumerations()
finders: Any = sys.meta_path
finders.append(CompiledModules)
