"""Kernel limits of one process, set by util-linux ``prlimit`` in front of the command."""

from __future__ import annotations

import resource
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


def _at_most(which: int, wanted: int) -> int:
    hard = resource.getrlimit(which)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def prefix(limits: Limits) -> list[str]:
    """The words to put before a command so that it and its children run within ``limits``.

    Memory is bounded by the data segment, not by the address space: torch maps far more addresses than it uses. A limit
    that is lower already (as in a container) stays: nobody but root may raise it. A driver of a GPU maps more data than
    it uses, too: where ``each_process`` is false only the watcher bounds memory, by what is really used.
    """
    data = [f"--data={_at_most(resource.RLIMIT_DATA, limits.memory_bytes)}"] if limits.each_process else []
    return [
        program("prlimit"),
        *data,
        f"--nproc={_at_most(resource.RLIMIT_NPROC, limits.processes)}",
        f"--fsize={_at_most(resource.RLIMIT_FSIZE, limits.file_bytes)}",
        f"--nofile={_at_most(resource.RLIMIT_NOFILE, limits.open_files)}",
        "--core=0",
        "--",
    ]
