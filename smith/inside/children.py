"""Forked children: each plan runs in a process of its own, made from one that has the slow imports behind it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

PR_SET_DUMPABLE = 4
POLL_S = 0.01


@dataclass(frozen=True)
class Status:
    """How a child ended. ``status`` is as :mod:`subprocess` has it: negative for a signal."""

    status: int
    timed_out: bool
    seconds: float


def hide() -> None:
    """Keep this process's memory and descriptors from its children, which run under the same user id.

    A process that is not dumpable cannot be traced, and its ``/proc`` entries belong to root.
    """
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def read_line(fd: int) -> bytes:
    """One line from ``fd`` and not a byte more: what comes after it must not lie in a child's memory."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(fd, 1)
        if not byte:
            break
        line += byte
    return bytes(line)


def entries(folders: Iterable[str]) -> list[str]:
    """Paths of what lies in those of ``folders`` that exist."""
    return [os.path.join(folder, name) for folder in folders if os.path.isdir(folder) for name in os.listdir(folder)]


def emptied(folders: Iterable[str], kept: Container[str]) -> bool:
    """Remove everything in ``folders`` but ``kept`` (which may be mounted there); whether nothing else is left.

    By coreutils, for folders nested thousands deep.
    """
    left = [entry for entry in entries(folders) if entry not in kept]
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        left = [entry for entry in left if os.path.lexists(entry)]
        if left:
            subprocess.run([*command, "--", *left], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return not any(map(os.path.lexists, left))


def run_child(work: Callable[[], int], *, wall_s: float, close: Iterable[int], alone: bool) -> Status:
    """Fork, do ``work`` in the child, wait for at most ``wall_s`` seconds, and end all that is left of it.

    ``close`` are descriptors that the child must not have. ``alone`` says that nothing else runs in this pid namespace,
    so that everything but this process can be ended; otherwise only the child's process group is.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            for fd in close:
                os.close(fd)
            status = work()
        except SystemExit as ending:
            status = ending.code if isinstance(ending.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status & 0xFF)
    status_word, timed_out = _wait(pid, began + wall_s)
    _end_all(pid, alone)
    return Status(os.waitstatus_to_exitcode(status_word), timed_out, time.monotonic() - began)


def _wait(pid: int, deadline: float) -> tuple[int, bool]:
    while True:
        gone, status = os.waitpid(pid, os.WNOHANG)
        if gone:
            return status, False
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1], True
        time.sleep(POLL_S)


def _end_all(pid: int, alone: bool) -> None:
    """End what the child left behind: no process of one plan may live on into the next."""
    target = -1 if alone else -pid
    for _ in range(1000):
        try:
            # In a namespace of our own this reaches everything but this process and the namespace's init.
            os.kill(target, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
        if not alone:
            return
        time.sleep(0.001)
