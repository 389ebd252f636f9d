"""Compile captured launches: ``python -m smith.inside.compile_launches < plan``, one JSON document on one line.

The plan: ``root``, ``python_path``, ``prelude``, ``tmp``, ``launches``, ``targets``, ``known`` (keys by target that
were compiled before), ``jobs`` (workers at most), ``launch_s`` and ``import_s`` (time limits), ``key`` (hexadecimal)
and ``channel`` (a descriptor). Workers are forked from this process, which has torch and triton loaded and runs no
code of the repository; it alone holds the channel. A worker serves one target, stays warm, and is replaced when it
crashes or takes too long: what it was at is that launch's failure.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import selectors
import signal
import sys
import tempfile
import time
from collections import deque
from typing import Any

from smith.inside.channel import Send, open_channel
from smith.inside.children import hide
from smith.inside.compiling import last_words, work

PRELOAD = ("numpy", "torch", "triton", "torch.distributed.tensor", "triton.experimental.gluon.nvidia.hopper")
"""What every worker needs, and what Triton imports when it first specialises a launch."""
WORTH_ANOTHER = 12
"""Launches that a further worker of a target must find waiting: it imports the repository first."""
DETAIL = 600
"""Characters of a failure's words that a record takes."""
MOST_CRASHES = 20
"""Workers of one target that may be lost; after that its remaining launches are not tried."""


class Worker:
    """A forked process, the pipe to it, the pipe from it, and what it is at."""

    def __init__(self, plan: dict[str, Any], target: str) -> None:
        self.target = target
        self.at: int | None = None
        self.ready = False
        asked, self.ask = os.pipe()
        self.answers, said = os.pipe()
        handle, self.errors = tempfile.mkstemp(prefix="smith-compile-", dir=plan["tmp"])
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.setsid()
                os.dup2(handle, 1)
                os.dup2(handle, 2)
                os.close(plan["channel"])
                os.close(self.ask)
                os.close(self.answers)
                nothing = os.open(os.devnull, os.O_RDONLY)
                os.dup2(nothing, 0)
                status = work(plan, target, asked, said, self.errors)
            finally:
                os._exit(status)
        for fd in (asked, said, handle):
            os.close(fd)
        self.deadline = time.monotonic() + plan["import_s"]
        self.buffer = b""

    def end(self) -> str:
        """Kill it, see it gone, and say how it ended: by itself where it had."""
        try:
            gone, status = os.waitpid(self.pid, os.WNOHANG)
            if not gone:
                time.sleep(0.05)  # its pipe closes a little before it can be waited for
                gone, status = os.waitpid(self.pid, os.WNOHANG)
            if not gone:
                os.killpg(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                return "killed"
        finally:
            os.close(self.ask)
            os.close(self.answers)
        code = os.waitstatus_to_exitcode(status)
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"


class Pool:
    """Hands launches to workers until each has an answer for each target."""

    def __init__(self, plan: dict[str, Any], send: Send) -> None:
        self._plan, self._send = plan, send
        self._left = {target: deque(range(len(plan["launches"]))) for target in plan["targets"]}
        self._lost = dict.fromkeys(plan["targets"], 0)
        self._workers: list[Worker] = []
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Serve until nothing is left."""
        while any(self._left.values()) or self._workers:
            self._hire()
            soonest = min((worker.deadline for worker in self._workers), default=time.monotonic())
            for key, _ in self._selector.select(max(0.0, min(1.0, soonest - time.monotonic()))):
                self._read(key.data)
            for worker in list(self._workers):
                if time.monotonic() >= worker.deadline:
                    self._dismiss(worker, timed_out=True)

    def _hire(self) -> None:
        while len(self._workers) < self._plan["jobs"]:
            at_it = [worker.target for worker in self._workers]
            waiting = [
                (at_it.count(target), -len(left), target)
                for target, left in self._left.items()
                if left and (target not in at_it or len(left) > WORTH_ANOTHER * at_it.count(target))
            ]
            if not waiting:
                return
            worker = Worker(self._plan, min(waiting)[2])
            self._workers.append(worker)
            self._selector.register(worker.answers, selectors.EVENT_READ, worker)

    def _read(self, worker: Worker) -> None:
        data = os.read(worker.answers, 1 << 16)
        if not data:
            self._dismiss(worker, timed_out=False)
            return
        *lines, worker.buffer = (worker.buffer + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "broken" in said:
                self._give_up(worker.target, "import_failed", said["broken"])
                self._dismiss(worker, timed_out=False)
                return
            if not worker.ready:
                worker.ready = True
            elif said.get("launch") == worker.at:
                worker.at = None
                self._answer(worker.target, **said)
            self._next(worker)

    def _next(self, worker: Worker) -> None:
        left = self._left[worker.target]
        if not left:
            self._dismiss(worker, timed_out=False)
            return
        worker.at = left.popleft()
        worker.deadline = time.monotonic() + self._plan["launch_s"]
        with contextlib.suppress(BrokenPipeError):  # it is gone, which its other pipe says
            os.write(worker.ask, b"%d\n" % worker.at)

    def _dismiss(self, worker: Worker, *, timed_out: bool) -> None:
        self._selector.unregister(worker.answers)
        self._workers.remove(worker)
        how = worker.end()
        if worker.at is not None:
            words = last_words(worker.errors)
            detail = f"over {self._plan['launch_s']:g} s" if timed_out else f"{how}{': ' if words else ''}{words}"
            failure = "timeout" if timed_out else "crashed"
            self._answer(worker.target, launch=worker.at, failure=failure, detail=detail)
        elif not worker.ready and self._left[worker.target]:
            detail = "importing took too long" if timed_out else f"importing ended the process: {how}"
            self._give_up(worker.target, "import_failed", detail)
        os.unlink(worker.errors)
        if worker.at is not None:
            self._lost[worker.target] += 1
            if self._lost[worker.target] > MOST_CRASHES:
                self._give_up(worker.target, "not_tried", f"{MOST_CRASHES} compilers were lost before")

    def _give_up(self, target: str, failure: str, detail: str) -> None:
        left = self._left[target]
        while left:
            self._answer(target, launch=left.popleft(), failure=failure, detail=detail)

    def _answer(self, target: str, *, detail: str = "", **fields: Any) -> None:
        self._send("compiled", target=target, detail=detail[:DETAIL], **fields)


def main() -> int:
    """Read the plan, load what all workers need, serve."""
    hide()
    plan: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    send = open_channel(int(plan["channel"]), bytes.fromhex(plan.pop("key")))
    versions = {}
    for name in PRELOAD:
        try:
            versions[name] = str(getattr(importlib.import_module(name), "__version__", ""))
        except ImportError:
            continue
    note = ""
    if "triton" in versions:
        differences: Any = importlib.import_module("smith.device.compiler.versions")
        differences.spare_a_digest()
        note = differences.do_without_linker()
    plan["targets"] = _targets(plan["targets"])
    send("compiler", triton=versions.get("triton", ""), targets=plan["targets"], note=note)
    if "triton" in versions:
        Pool(plan, send).run()
    send("end", status=0)
    return 0


def _targets(asked: list[str]) -> list[str]:
    """Those of the targets that this triton has a back end for."""
    try:
        backends: Any = importlib.import_module("triton.backends").backends
        find: Any = importlib.import_module("smith.device.interpreter.target").find_target
    except ImportError:
        return []
    names = {"hip": "amd", "cuda": "nvidia"}
    return [target for target in asked if names[find(target).backend] in backends]


if __name__ == "__main__":
    sys.exit(main())
