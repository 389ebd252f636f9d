"""The pytest plug-in: ``python -m pytest -p smith.device.interpreter.plugin``.

Importing it installs the device; pytest imports ``-p`` plug-ins before any conftest or test module, so everything the
repository imports afterwards is the patched torch and Triton.

Environment variables:

- ``SMITH_DEVICE``: ``interpreter`` or ``interpreter:gfx950``; without a target it is gfx942.
- ``SMITH_STRICT_ASSUME=1``: a ``tl.assume`` that does not hold is an error.
- ``SMITH_PRELUDE``: a Python file, run after the device is installed and before collection, with ``__name__`` set to
  ``smith_prelude``: what one upstream needs before it can be imported.
"""

from __future__ import annotations

import os
import runpy

from . import install, installed

DEVICE = "SMITH_DEVICE"
PRELUDE = "SMITH_PRELUDE"
STRICT_ASSUME = "SMITH_STRICT_ASSUME"


def target_of(device: str) -> str:
    """The target in a device name.

    :raises ValueError: the name is not one of an interpreter device.
    """
    kind, _, target = device.partition(":")
    if kind != "interpreter":
        raise ValueError(f"{DEVICE}={device!r} does not name an interpreter device")
    return target or "gfx942"


def start() -> None:
    """Install the device and run the prelude, as the environment says; once a process."""
    if installed() is not None:
        return
    install(target_of(os.environ.get(DEVICE, "interpreter")), strict_assume=os.environ.get(STRICT_ASSUME) == "1")
    prelude = os.environ.get(PRELUDE)
    if prelude:
        runpy.run_path(prelude, run_name="smith_prelude")


start()
