"""Kernel limits of one process, set by util-linux ``prlimit`` in front of the command."""

from __future__ import annotations

import shutil

from smith.errors import Unavailable
from smith.sandbox.base import Limits

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def program(name: str) -> str:
    """The absolute path of one of the system's own programs, whatever ``PATH`` a command is to have.

    Raises :class:`Unavailable` where it is not installed.
    """
    found = shutil.which(name, path=PATH)
    if found is None:
        raise Unavailable(f"{name} is not installed")
    return found


def prefix(limits: Limits) -> list[str]:
    """The words to put before a command so that it and its children run within ``limits``.

    Memory is bounded by the data segment, not by the address space: torch maps far more addresses than it uses.
    """
    return [
        program("prlimit"),
        f"--data={limits.memory_bytes}",
        f"--nproc={limits.processes}",
        f"--fsize={limits.file_bytes}",
        f"--nofile={limits.open_files}",
        "--core=0",
        "--",
    ]
