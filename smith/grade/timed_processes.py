"""Processes that are timed: one tree each, fresh, and several of them taking turns sample by sample.

Whatever slows a machine for longer than a sample takes (a neighbour, the clock of a processor) then slows all of them
alike, and a ratio between them stays what it is.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import secrets
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from smith.errors import Unavailable
from smith.gpus.base import is_gpu
from smith.grade.trial import Trial
from smith.harness.stage import Stage
from smith.inside.time_workload import MAX_SAMPLES, MIN_SAMPLES, lower_quartile
from smith.sandbox.base import Ended, Limits
from smith.sandbox.watch import processor_s

PROCESS_S = 120.0
"""How long a process may take by itself."""
MAX_BYTES = 4 << 20
SLOWEST, SLACK_S = 0.75, 1.0
"""How far a timed process's clock may be from ours over its whole life."""
WORKED, WORKED_S = 0.05, 0.02
"""Share of the time in which others are timed, and seconds, that a process may go on working."""
OURS, OURS_S = 0.7, 0.0005
"""The least that a process may say of a sample: this share of what our own clock says, less so many seconds."""
EVENTS, EVENT_NS = 0.9, 500_000.0
"""How far the events of a GPU may be from the clock of their host: this share of its time, and this a sample."""

Sampled = dict[str, dict[str, Any]]
"""Figures or results by case."""


class CannotTime(Unavailable):
    """A workload that does not run on a side, or gives another result there: nothing to compare.

    ``candidate`` says whether the candidate is the one at fault.
    """

    def __init__(self, message: str, *, candidate: bool) -> None:
        super().__init__(message)
        self.candidate = candidate


class Tampered(CannotTime):
    """The candidate reached for the clock, the statistics or the report, or left work behind the clock's back."""


@dataclass(frozen=True)
class Side:
    """A built tree that is timed, and whether it is the candidate's."""

    trial: Trial
    candidate: bool


@dataclass(frozen=True)
class Told:
    """What a process said: figures or results by case, and the seconds of processor time it took."""

    cases: Sampled
    processor_s: float


def compute(side: Side, file: Path, seed: int) -> Told:
    """The results of every case of a workload file, each computed once on inputs from ``seed``.

    Raises :class:`CannotTime` where it does not run.
    """
    with _Process.begun(side, file, seed, turns=False) as process:
        return process.end()


def time_together(sides: Sequence[Side], file: Path, seed: int, case_s: float, *, cold: bool = False) -> list[Told]:
    """The figures of every case, for each of ``sides`` in a fresh process of its own.

    Each case is sampled in turns, in an order drawn anew for each, for about ``case_s`` seconds a process. The sides
    are in places of their own, since they run at the same time. Raises :class:`CannotTime` and :class:`Tampered`.
    """
    draw = random.Random(secrets.randbits(64))
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(_Process.begun(side, file, seed, turns=True, beside=len(sides), cold=cold))
            for side in sides
        ]
        names = [process.names() for process in processes]
        for process, some in zip(processes, names, strict=True):
            if some != names[0]:
                raise CannotTime("the legs have other cases", candidate=process.side.candidate)
        for case in range(len(names[0])):
            end, taken = time.monotonic() + case_s * len(sides), 0
            while taken < MIN_SAMPLES or (time.monotonic() < end and taken < MAX_SAMPLES):
                for process in draw.sample(processes, len(processes)):
                    process.turn(case)
                taken += 1
        return [process.end() for process in processes]


class _Process:
    """One timed process in its sandbox, and the two pipes to it."""

    def __init__(self, side: Side, name: str, results: int, turns: int | None) -> None:
        self.side, self._name = side, name
        self.sandboxed: Future[Ended] = Future()
        self._turns = turns
        self._first, self._last = 0.0, 0.0
        self._root: int | None = None
        self._waited_s, self._worked_s = 0.0, 0.0
        self._rested: tuple[float, float] | None = None
        self._called: dict[int, list[float]] = {}
        self._said: SimpleQueue[bytes | None] = SimpleQueue()
        self._begun = False
        # Read all the while, so that the moments are those at which it wrote.
        self._reader = threading.Thread(target=self._listen, args=(results,), daemon=True)
        self._reader.start()

    @classmethod
    @contextlib.contextmanager
    def begun(
        cls, side: Side, file: Path, seed: int, *, turns: bool, beside: int = 1, cold: bool = False
    ) -> Iterator[_Process]:
        """Start it; at the end it is over, however that came."""
        one = side.trial
        stage = Stage(
            one.bench.sandbox, one.place, one.environment, one.bundle.recipe, one.bench.device, one.bundle.prelude
        )
        stage.lay_out()
        shutil.copy(file, one.place.lib / file.name)
        reader, writer = os.pipe()
        taker, giver = os.pipe() if turns else (None, None)
        inner = [end for end in (writer, taker) if end is not None]
        plan = {
            "fd": writer,
            "turns": taker,
            "file": f"{stage.lib}/{file.name}",
            "seed": seed,
            "seconds": 0,
            "source": stage.source,
            "python_path": list(one.bundle.recipe.python_path),
            "prelude": stage.prelude_inside,
            "gpu": is_gpu(one.bench.device),
            "cold": cold,
        }
        argv = stage.module("time_workload", json.dumps(plan))

        with ThreadPoolExecutor(1) as pool:
            process = cls(side, file.name, reader, giver)

            def run() -> Ended:
                try:
                    # Others take their time meanwhile.
                    return stage.run(argv, Limits(wall_s=PROCESS_S * beside), pass_fds=inner, started=process.started)
                finally:
                    for end in inner:
                        os.close(end)

            process.sandboxed = pool.submit(run)
            try:
                yield process
            finally:
                # Without turns to come it ends by itself.
                process._close()

    def started(self, root: int) -> None:
        """It runs, below the process ``root``."""
        self._root = root

    def names(self) -> list[str]:
        """The names of the cases, when all are warmed up."""
        line = self._line()
        try:
            names = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._broken() from error
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise self._broken()
        return names

    def turn(self, case: int) -> None:
        """Let it take one sample of a case, and wait until it has."""
        self._rest_ends()
        self._ask(case)
        made = time.monotonic()
        self._ask(case)
        ended = time.monotonic()
        self._called.setdefault(case, []).append(ended - made)
        self._rested = self._moment()

    def _ask(self, case: int) -> None:
        self._give(case)
        if self._line():
            raise self._broken()

    def _moment(self) -> tuple[float, float] | None:
        """Our clock, and the processor time of everything in its sandbox."""
        return (time.monotonic(), processor_s(self._root)) if self._root is not None else None

    def _rest_ends(self) -> None:
        """Count what it did while it was the turn of others: it could slow them down."""
        before, now = self._rested, self._moment()
        if before is not None and now is not None:
            self._waited_s += now[0] - before[0]
            self._worked_s += max(0.0, now[1] - before[1])

    def end(self) -> Told:
        """Everything that it found."""
        turns = self._turns is not None
        if turns:
            self._rest_ends()
            self._give(-1)
        line = self._line()
        try:
            document = json.loads(line)
            cases, used = document["cases"], float(document["processor_s"])
            if not cases or not all(_sound(figures, timed=turns) for figures in cases.values()):
                raise ValueError("no cases")
            fault = self._fault(document)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._broken() from error
        if fault:
            raise self._tampered(fault)
        return Told(dict(cases), used)

    def _give(self, number: int) -> None:
        assert self._turns is not None
        with contextlib.suppress(BrokenPipeError):  # it is told where the answer is missing
            os.write(self._turns, f"{number}\n".encode())

    def _listen(self, results: int) -> None:
        """Put the lines that it writes, without their ends, into the queue; None after the last."""
        rest, heard = b"", 0
        with os.fdopen(results, "rb", buffering=0) as pipe:
            while heard < MAX_BYTES and (data := pipe.read(1 << 16)):
                self._last = time.monotonic()
                self._first = self._first or self._last
                heard += len(data)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._said.put(line)
        if rest:
            self._said.put(rest)
        self._said.put(None)

    def _line(self) -> bytes:
        """The next line that it writes. Raises :class:`CannotTime` where it writes no more."""
        line = self._said.get()
        if line is None:
            raise self._broken()
        if self._begun:
            return line
        self._begun = True
        # One space says that it has begun. A second one: it has begun twice.
        if line[:1] == b" " and line[1:2] == b" ":
            raise self._tampered("the process was begun anew while it was timed")
        return line[1:]

    def _tampered(self, fault: str) -> Tampered:
        return Tampered(f"the workload {self._name}: {fault}", candidate=self.side.candidate)

    def _broken(self) -> CannotTime:
        self._close()
        done = self.sandboxed.result()
        words = done.stderr.text.strip().splitlines()
        detail = words[-1][:300] if words else "nothing was said"
        return CannotTime(
            f"the workload {self._name} does not run ({done.ending}): {detail}", candidate=self.side.candidate
        )

    def _close(self) -> None:
        if self._turns is not None:
            os.close(self._turns)
        self._turns = None

    def _fault(self, document: dict[str, Any]) -> str:
        """What of its own account cannot be; empty where all is well."""
        self._close()
        self._reader.join()
        if self._said.get() is not None:
            return "it says more than was asked"
        altered = document.get("altered")
        if not isinstance(altered, list) or altered:
            return f"altered {', '.join(map(str, altered[:5])) if isinstance(altered, list) else 'the report'}"
        heard_s = self._last - self._first
        elapsed = document.get("elapsed_s")
        if not isinstance(elapsed, float) or not heard_s * SLOWEST - SLACK_S <= elapsed <= heard_s / SLOWEST + SLACK_S:
            return f"its clock says {elapsed!r:.10} s where ours says {heard_s:.2f} s"
        for case, figures in document["cases"].items():
            if figures.get("left", 0):
                return f"{case}: threads or processes go on working when the call has returned"
        if self._worked_s > WORKED * self._waited_s + WORKED_S:
            return f"it works while others are timed ({self._worked_s:.1f} s of {self._waited_s:.1f} s)"
        return self._too_short(document) or disagreement(document)

    def _too_short(self, document: dict[str, Any]) -> str:
        """A case whose calls take longer by our clock than it says; empty where none does."""
        if document.get("device_samples"):
            host = float(document["host_ns"]) / 1e9
            ours = sum(map(sum, self._called.values()))
            slack = OURS_S * document["device_samples"]
            return "" if host >= OURS * ours - slack else f"its clock says {host:.3f} s where ours says {ours:.3f} s"
        for number, (case, figures) in enumerate(document["cases"].items()):
            if number in self._called:
                said, ours = figures["ns"] * figures["inner"] / 1e9, lower_quartile(self._called[number])
                if said < OURS * ours - OURS_S:
                    return f"{case}: its clock says {said * 1e3:.2f} ms a sample where ours says {ours * 1e3:.2f} ms"
        return ""


def _sound(figures: Any, *, timed: bool) -> bool:
    """Whether what a process says of a case has the form that it should have."""
    if not isinstance(figures, dict):
        return False
    if not timed:
        return _is_result(figures)
    numbers = [figures.get(name) for name in ("ns", "inner", "left")]
    whole = all(isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in numbers)
    checks = figures.get("checks")
    return (
        whole
        and figures["ns"] > 0
        and figures["inner"] >= 1
        and isinstance(checks, list)
        and all(map(_is_result, checks))
    )


def _is_result(one: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("shape"), list) or not isinstance(one.get("values"), list):
        return False
    return all(isinstance(value, float) for value in one["values"])


def disagreement(document: dict[str, Any]) -> str:
    """What the events of a GPU and the clock of its host say against each other; empty where nothing is."""
    if not document.get("device_samples"):
        return ""
    device, host = float(document["device_ns"]), float(document["host_ns"])
    slack = EVENT_NS * document["device_samples"]
    if device > host / EVENTS + slack or device < host * EVENTS - slack:
        return f"the events of the device say {device / 1e6:.1f} ms where its host's clock says {host / 1e6:.1f} ms"
    return ""
