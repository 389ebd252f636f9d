"""Time the cases of a workload file in this process and write what was found to a file descriptor.

Runs inside the sandbox as ``python -m smith.inside.time_workload PLAN``, a JSON document: ``fd`` to write to, ``turns``
to read from (or null), ``file``, ``seed``, ``seconds``, ``source``, ``python_path``, ``prelude``, ``gpu``, ``cold``.
The clock and the statistics are bound before any code of the repository is imported, and what was replaced all the same
is told. Every sample is of fresh inputs made outside the timed region; a case's figure is the lower quartile of its
samples, for what disturbs a sample only ever makes it longer. A result is read as soon as the clock stops and spoiled
afterwards, so that neither work left in a thread nor a result kept from an earlier call is worth anything.

One space is written before the repository is imported: whoever reads can hold our clock against its own. With
``turns`` the cases are warmed up and their names written as one line. Then a sample of a case is taken when its number
comes in twice, once for the inputs and once for the calls, and a line is written when either is done: several processes
can take turns with samples, so that all see the same weather, and each part can be timed from outside. Without
``turns`` each case is sampled for ``seconds``; with 0 seconds it is computed once and not timed. At the end comes one
line with everything.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import runpy
import sys
from collections.abc import Callable, Iterator
from time import monotonic, perf_counter_ns
from typing import Any

from smith.inside.guard import Guard
from smith.inside.timers import Call, DeviceTimer, HostTimer, Timer

MIN_SAMPLES = 9
MAX_SAMPLES = 200
VALUES = 512
CHECKS = 3
"""Timed calls whose results are kept, each by so many values at places drawn anew."""
CHECKED_VALUES = 64
DISTINCT = 64
"""Inputs that a sample of short calls goes through, at most: one that is called again and again could be
remembered."""
STABLE = 0.05
WARM_UP = 12
WARM_INPUTS = 3


def lower_quartile(values: list[float]) -> float:
    """The value a quarter of the way from the smallest to the largest; between two, the smaller."""
    return sorted(values)[(len(values) - 1) // 4]


class Case:
    """One case of a workload, warmed up; ``make`` draws inputs and gives a call of them.

    Each sample is of inputs of its own, drawn from ``seed`` and its number, so that two processes can compare the
    results of the calls that were timed: a call that gives back what an earlier one computed is found out.
    """

    def __init__(self, make: Callable[[], Call], seed: int, timer: Timer) -> None:
        self._make, self._seed, self._timer = make, seed, timer
        once, self.warm_up = self._warm()
        self._inner = max(1, timer.shortest_ns // once)
        self._checked = set(random.Random(seed).sample(range(MIN_SAMPLES), CHECKS))
        self._samples: list[float] = []
        self._checks: list[dict[str, Any]] = []
        self._calls: list[Call] = []
        self._ns = 0.0
        self._value: object = None
        self._busy, self._left = _running(), 0

    def prepare(self) -> None:
        """Draw the inputs of the next sample."""
        seed_all(self._seed + len(self._samples))
        # How many there are differs between processes. The first inputs are the same in all: they come last.
        self._calls = [self._make() for _ in range(min(self._inner, DISTINCT))][::-1]

    def sample(self) -> None:
        """Time the inputs that were drawn."""
        self._ns, self._value = self._timer.sample(self._calls, self._inner)

    def keep(self) -> None:
        """Look at the result of what was timed, and spoil it."""
        number, ns, value = len(self._samples), self._ns, self._value
        self._calls, self._value = [], None
        self._samples.append(ns)
        if number in self._checked:
            self._checks.append(result_of(value, self._seed, CHECKED_VALUES))
        self._left = max(self._left, _running() - self._busy)
        spoil(value)

    def figures(self) -> dict[str, Any]:
        """Nanoseconds a call (the lower quartile), how they were taken, and results of timed calls."""
        return {
            "ns": lower_quartile(self._samples),
            "samples": len(self._samples),
            "inner": self._inner,
            "warm_up": self.warm_up,
            "checks": self._checks,
            "left": self._left,
        }

    def _warm(self) -> tuple[int, int]:
        """Nanoseconds of one warm call, and how many it took: until three in a row lie within 5 %, 12 at most."""
        last: list[int] = []
        calls = []
        for number in range(1, WARM_UP + 1):
            if number <= WARM_INPUTS:
                seed_all(self._seed - number)
                calls.append(self._make())
            last = [*last[-2:], max(1, self._timer.once(calls[number % len(calls)]))]
            if number > WARM_INPUTS and max(last) <= (1 + STABLE) * min(last):
                break
        return sorted(last)[len(last) // 2], number


def time_case(make: Callable[[], Call], seconds: float, seed: int = 0, timer: Timer | None = None) -> dict[str, Any]:
    """The figures of a case that is sampled for about ``seconds`` without a break."""
    case = Case(make, seed, timer or HostTimer())
    end, taken = perf_counter_ns() + int(seconds * 1e9), 0
    while taken < MIN_SAMPLES or (perf_counter_ns() < end and taken < MAX_SAMPLES):
        case.prepare()
        case.sample()
        case.keep()
        taken += 1
    return case.figures()


def _running() -> int:
    """Threads of this process and its children."""
    try:
        threads = os.listdir("/proc/self/task")
        children = 0
        for thread in threads:
            with open(f"/proc/self/task/{thread}/children", "rb") as file:
                children += len(file.read().split())
        return len(threads) + children
    except OSError:
        return 0


def spoil(value: Any) -> None:
    """Make a result useless for later calls: what was kept or freed of it holds no answer any more."""
    if isinstance(value, (tuple, list)):
        for each in value:
            spoil(each)
    elif hasattr(value, "detach"):
        try:
            value = value.detach()
            value.fill_(float("nan") if value.is_floating_point() else 77)
        except RuntimeError:
            return


def seed_all(seed: int) -> None:
    """Seed the default generators of what is loaded: both sides of a comparison draw the same inputs."""
    seed %= 1 << 31
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def result_of(value: Any, seed: int, most: int = VALUES) -> dict[str, Any]:
    """Shape and up to ``most`` values, at places drawn from ``seed``, of a tensor, number or sequence of them."""
    if isinstance(value, (tuple, list)):
        parts = [result_of(part, seed, most) for part in value]
        return {"shape": [p["shape"] for p in parts], "values": [v for p in parts for v in p["values"]]}
    kind = ""
    if hasattr(value, "detach"):
        tensor = sys.modules["torch"].Tensor
        # Something that only acts as a tensor may have computed nothing yet.
        kind = "" if type(value).__torch_function__ is tensor.__torch_function__ else type(value).__qualname__
        value = value.detach().cpu().double().numpy()
    if hasattr(value, "ravel"):
        flat, shape = value.ravel(), list(value.shape)
    else:
        flat, shape = [value], []
    places = random.Random(seed).sample(range(len(flat)), min(len(flat), most))
    return {"shape": [kind, *shape] if kind else shape, "values": [float(flat[place]) for place in places]}


def _numbers(fd: int) -> Iterator[int]:
    """The numbers that come in, one a line, up to the first below 0."""
    read, rest = os.read, b""
    while True:
        while b"\n" not in rest:
            data = read(fd, 64)
            if not data:
                return
            rest += data
        line, _, rest = rest.partition(b"\n")
        if (number := int(line)) < 0:
            return
        yield number


def _seconds(began: float, now: Callable[[], float] = monotonic) -> float:
    return now() - began


def _timer(plan: dict[str, Any]) -> Timer:
    if not plan["gpu"]:
        return HostTimer()
    # A GPU's clock is torch's; loaded now, so that it is torch's own.
    return DeviceTimer(importlib.import_module("torch"), cold=bool(plan["cold"]))


def main(argv: list[str]) -> None:
    """Do what the plan asks, and end the process."""
    plan: dict[str, Any] = json.loads(argv[0])
    fd, source, seed, seconds = int(plan["fd"]), str(plan["source"]), int(plan["seed"]), float(plan["seconds"])
    encode, write, leave, times = json.JSONEncoder().encode, os.write, os._exit, os.times
    turns: int | None = plan["turns"]
    for descriptor in (fd, turns):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
    os.chdir(source)
    timer = _timer(plan)
    guard = Guard(source, own=("__main__",))
    altered, began = guard.altered, monotonic()

    def say(document: object) -> None:
        data = encode(document).encode() + b"\n"
        while data:
            data = data[write(fd, data) :]

    write(fd, b" ")
    # Only now: nothing of the repository can stand for a module that was imported above.
    sys.path[:0] = [os.path.normpath(os.path.join(source, folder)) for folder in plan["python_path"]]
    if plan["prelude"]:
        runpy.run_path(plan["prelude"], run_name="smith_prelude")
    namespace: dict[str, Any] = runpy.run_path(plan["file"], run_name="smith_workload")
    results: dict[str, Any] = {}
    made: list[tuple[str, Case]] = []
    for number, (name, make) in enumerate(namespace["cases"]()):
        seed_all(seed + number)
        if turns is not None:
            made.append((name, Case(make, seed + 1000 * number, timer)))
        else:
            results[name] = (
                time_case(make, seconds, seed + 1000 * number, timer) if seconds else result_of(make()(), seed)
            )
    if turns is not None:
        say([name for name, _ in made])
        numbers = _numbers(turns)
        for number in numbers:
            # Two answers: the time between them is what whoever asks can measure by a clock of its own.
            case = made[number][1]
            case.prepare()
            write(fd, b"\n")
            next(numbers, None)
            case.sample()
            write(fd, b"\n")
            case.keep()
        results = {name: case.figures() for name, case in made}
    used = sum(times()[:4])
    document = {"cases": results, "processor_s": used, "altered": altered(), "elapsed_s": _seconds(began)}
    say(document | timer.account())
    # All is said. Threads and exit hooks of the repository are nothing to wait for.
    leave(0)


if __name__ == "__main__":
    main(sys.argv[1:])
