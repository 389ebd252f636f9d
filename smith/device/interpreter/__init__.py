"""The device ``interpreter``: a repository's own GPU tests on a CPU, through the Triton interpreter.

:func:`install` patches the running process; nothing in the repository under test is edited. It must run before the
repository (or its tests) import torch or triton by name, because functions that were imported earlier are the
unpatched ones. In pytest, ``-p smith.device.interpreter.plugin`` takes care of that.

The device proves correctness only. What it cannot compute rightly it refuses with :class:`NotInterpretable`.
"""

from __future__ import annotations

import os

from .refusals import NotInterpretable
from .target import Target, find_target

__all__ = ["NotInterpretable", "Target", "find_target", "install", "installed", "stand_in"]

_installed: Target | None = None


def installed() -> Target | None:
    """The target this process was told to be, or None while nothing is installed."""
    return _installed


def install(target: str = "gfx942", *, strict_assume: bool = False) -> None:
    """Make this process a machine with one device of the architecture ``target``.

    ``strict_assume`` makes a ``tl.assume`` that does not hold an error; by default it is a hint, as on a GPU.
    A second call with the same target does nothing.

    :raises UnknownTarget: no profile has that name.
    :raises RuntimeError: another target is installed already, or Triton was imported in compile mode.
    """
    global _installed
    profile = find_target(target)
    if _installed is not None:
        if _installed != profile:
            raise RuntimeError(f"the interpreter is installed for {_installed.arch}; one process has one target")
        return
    os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    from . import (
        autotune,
        driver,
        language,
        launches,
        libdevice,
        narrow,
        refusals,
        torch_cuda,
        torch_devices,
        versions,
    )

    language.require_interpreted()
    torch_devices.install()
    torch_cuda.install(profile)
    driver.install(profile)
    versions.install()
    narrow.install()
    libdevice.install(profile)
    language.install(strict_assume=strict_assume)
    autotune.install()
    launches.install()
    refusals.install()
    _installed = profile


def stand_in(target: str) -> None:
    """Answer for one device of the architecture ``target`` without interpreting anything.

    For a process that compiles: the repository's modules ask torch and Triton for a device when they are imported, and
    must find the one that the interpreter told them of.

    :raises UnknownTarget: no profile has that name.
    :raises RuntimeError: a target is installed already.
    """
    global _installed
    profile = find_target(target)
    if _installed is not None:
        raise RuntimeError(f"this process stands in for {_installed.arch}; one process has one target")
    from . import autotune, driver, torch_cuda, torch_devices

    torch_devices.install()
    torch_cuda.install(profile)
    driver.install(profile)
    autotune.install()  # or older code cannot be imported, for keys that are no arguments
    _installed = profile
