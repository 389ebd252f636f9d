"""Kernel limits of one process, set by util-linux ``prlimit`` in front of the command."""

from __future__ import annotations

from smith.sandbox.base import Limits

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def prefix(limits: Limits) -> list[str]:
    """The words to put before a command so that it and its children run within ``limits``.

    Memory is bounded by the data segment, not by the address space: torch maps far more addresses than it uses.
    """
    return [
        "prlimit",
        f"--data={limits.memory_bytes}",
        f"--nproc={limits.processes}",
        f"--fsize={limits.file_bytes}",
        f"--nofile={limits.open_files}",
        "--core=0",
        "--",
    ]
