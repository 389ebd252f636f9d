"""Watching a sandbox from outside: its memory, its number of processes, its output, and that it is gone at the end.

Kernel limits bound one process; a tree of processes that each stay below them is bounded only here. The watcher is
told the process at the root of the tree by a pipe, and holds a pidfd of it, so that a number used again for another
process can never be killed by mistake.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from smith.errors import Defect
from smith.sandbox.base import Breach, Limits

INTERVAL_S = 0.05
GONE_WITHIN_S = 60.0  # the end is certain once the root is killed, but thousands of processes take their time


class Watch:
    """A thread that kills the tree below the announced process when it outgrows ``limits``.

    Pass :attr:`fd` to the child, which writes JSON documents to it, one a line, as bubblewrap does for
    ``--json-status-fd``: ``{"child-pid": N}`` first and ``{"exit-code": N}`` last. Leaving the context kills the root
    of the tree and waits until it is gone; with it goes its pid namespace.
    """

    def __init__(self, limits: Limits, spill: Path | None, started: Callable[[int], None] = lambda pid: None) -> None:
        self._limits, self._started = limits, started
        self._outputs = [spill.with_name(f"{spill.name}.{s}") for s in ("stdout", "stderr")] if spill else []
        self._read, self.fd = os.pipe()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="smith-sandbox-watch", daemon=True)
        self._said = b""
        self._pid: int | None = None
        self._pidfd: int | None = None
        self.breach: Breach | None = None

    @property
    def executed(self) -> bool:
        """Whether the command itself was started and ended: false when the sandbox could not be set up."""
        return b'"exit-code"' in self._said

    def __enter__(self) -> Self:
        os.set_blocking(self._read, False)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._listen()
        os.close(self.fd)
        os.close(self._read)
        if self._pidfd is not None:
            self._kill()
            gone, _, _ = select.select([self._pidfd], [], [], GONE_WITHIN_S)
            os.close(self._pidfd)
            if not gone and kind is None:
                raise Defect(f"a sandboxed process (pid {self._pid}) outlived its sandbox")

    def _watch(self) -> None:
        while not self._stop.wait(INTERVAL_S if self._pidfd is not None else INTERVAL_S / 5):
            self._listen()
            if self._pid is not None and self.breach is None:
                self.breach = self._look()
            if self.breach:
                self._kill()

    def _listen(self) -> None:
        """Take in what the child has said so far; with the first whole line the root of the tree is known."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._read, 4096):
                self._said += chunk
        if self._pid is None and b"}" in self._said:
            with contextlib.suppress(ValueError, KeyError, ProcessLookupError):
                self._pid = int(json.loads(self._said.partition(b"}")[0] + b"}")["child-pid"])
                self._pidfd = os.pidfd_open(self._pid)
                self._started(self._pid)

    def _look(self) -> Breach | None:
        if any(_size(path) > self._limits.file_bytes for path in self._outputs):
            return "output"
        assert self._pid is not None
        tree = descendants(self._pid, self._limits.processes + 1)
        if len(tree) > self._limits.processes:
            return "processes"
        # The first sum counts pages shared after a fork once for each process; the exact one is dear and rarely needed.
        allowed = self._limits.memory_bytes
        over = sum(map(_anonymous, tree)) > allowed and sum(map(_proportional, tree)) > allowed
        return "memory" if over else None

    def _kill(self) -> None:
        if self._pidfd is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)


def descendants(pid: int, most: int = 1 << 20) -> list[int]:
    """``pid`` and the processes below it, as far as they can be seen at this instant; not many more than ``most``."""
    found, index = [pid], 0
    while index < len(found) <= most:
        with contextlib.suppress(OSError, ValueError):
            for task in os.listdir(f"/proc/{found[index]}/task"):
                children = Path(f"/proc/{found[index]}/task/{task}/children").read_bytes()
                found += [int(child) for child in children.split()]
        index += 1
    return found


def processor_s(pid: int) -> float:
    """Seconds of processor time that the tree below ``pid`` has used: by what runs and by what was waited for."""
    ticks = 0
    for each in descendants(pid):
        with contextlib.suppress(OSError, ValueError):
            fields = Path(f"/proc/{each}/stat").read_bytes().rpartition(b") ")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_gone(pids: list[int], within_s: float = GONE_WITHIN_S) -> bool:
    """Whether none of ``pids`` runs any more (a zombie does not run), after waiting so long at most."""
    deadline = time.monotonic() + within_s
    while any(_runs(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b") ")[2][:1] not in (b"Z", b"X")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _field(path: str, *names: bytes) -> int:
    """The sum of the named fields of a file of ``/proc``, in bytes."""
    total = 0
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        for line in file:
            key, _, value = line.partition(b":")
            if key in names:
                total += int(value.split()[0]) * 1024
    return total


def _anonymous(pid: int) -> int:
    return _field(f"/proc/{pid}/status", b"RssAnon", b"RssShmem")


def _proportional(pid: int) -> int:
    return _field(f"/proc/{pid}/smaps_rollup", b"Pss_Anon", b"Pss_Shmem") or _anonymous(pid)
