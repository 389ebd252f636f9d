"""What a command takes with all the processes that it starts: wall time, processor time and memory.

Memory is the sum of the proportional set sizes of the whole tree (a page that several processes share counts once),
sampled while it runs. Linux only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_EVERY = 0.05


@dataclass(frozen=True)
class Usage:
    """``seconds`` of wall time, ``processor`` seconds of all processes, ``memory`` in MB at the peak."""

    seconds: float
    processor: float
    memory: float
    peak: Mapping[str, float]
    """MB of each process at that moment, by its command and number."""
    output: bytes


def run(argv: Sequence[str], *, memory: bool = False) -> Usage:
    """Run ``argv`` to its end; nothing else may run below this process. Raises :class:`SystemExit` where it fails.

    Without ``memory`` none is measured: reading the page tables of many processes slows them down.
    """
    # What a killed process leaves behind comes to us, so that its time is counted.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before, began = _processor(), time.perf_counter()
    peak: dict[str, float] = {}
    with tempfile.TemporaryFile() as said, subprocess.Popen(argv, stdout=said) as child:
        if not memory:
            child.wait()
        while child.poll() is None:
            now = _tree()
            if sum(now.values()) > sum(peak.values()):
                peak = now
            time.sleep(_EVERY)
        seconds = time.perf_counter() - began
        said.seek(0)
        output = said.read()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(argv)}: status {child.returncode}")
    return Usage(seconds, _processor() - before, sum(peak.values()), peak, output)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree() -> dict[str, float]:
    """MB of each process that we started, or that came to us when its parent was killed."""
    children: dict[int, list[tuple[int, str]]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                name, _, rest = (place / "stat").read_text("utf-8", "replace").partition("(")[2].rpartition(") ")
                children.setdefault(int(rest.split()[1]), []).append((int(place.name), name))
    found: dict[str, float] = {}
    pending = children.get(os.getpid(), [])
    while pending:
        pid, name = pending.pop()
        found[f"{name} {pid}"] = _pss(pid)
        pending += children.get(pid, [])
    return found


def _pss(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
