"""Imported before the tests of a GPU are forked off; sets up nothing but the counting of Triton's launches.

It must not wake the GPU: a runtime that was opened before a fork does not work after it. That nothing did is checked.
"""

from __future__ import annotations

import os

FOLDER = "/proc/self/fd"
OPENED = ("/dev/kfd", "/dev/nvidia-uvm")
"""Nodes that a runtime opens when it starts, and tools that only look (NVML, AMD SMI) do not."""


def opened(folder: str = FOLDER) -> str | None:
    """The device node that this process holds open already, if it does."""
    for name in os.listdir(folder):
        try:
            target = os.readlink(os.path.join(folder, name))
        except OSError:
            continue
        if target in OPENED:
            return target
    return None


def start() -> None:
    """Count launches where Triton is there. Raises :class:`RuntimeError` where an import has woken the GPU."""
    os.environ.pop("TRITON_INTERPRET", None)
    try:
        from . import launches
    except ImportError:
        pass
    else:
        launches.install()
    node = opened()
    if node is not None:
        raise RuntimeError(f"importing the libraries opened {node}: tests that are forked now could not use the GPU")


start()
