"""Time the cases of a workload file in this process and write one JSON document to a file descriptor.

Runs inside the sandbox as ``python -m smith.inside.time_workload FD FILE SECONDS SEED SOURCE FOLDER...``. The clock and
the statistics are bound before any code of the repository is imported, and what was replaced all the same is told.
Every sample is of fresh inputs made outside the timed region; a case's figure is the median over its samples. A result
is read as soon as the clock stops and spoiled afterwards, so that neither work left in a thread nor a result kept from
an earlier call is worth anything. One space is written before the repository is imported: whoever reads can hold our
clock against its own.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import sys
from collections.abc import Callable
from time import monotonic, perf_counter_ns
from typing import Any

from smith.inside.guard import Guard

MIN_SAMPLES = 9
MAX_SAMPLES = 200
VALUES = 512
CHECKS = 3
"""Timed calls whose results are kept, each by so many values at places drawn anew."""
CHECKED_VALUES = 64
SHORTEST_NS = 50_000
"""A sample that is shorter is repeated within itself until it is long enough for the clock."""
DISTINCT = 64
"""Inputs that such a sample goes through, at most: one that is called again and again could be remembered."""
STABLE = 0.05
WARM_UP = 12


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def time_case(
    make: Callable[[], Callable[[], object]],
    seconds: float,
    seed: int = 0,
    clock: Callable[[], int] = perf_counter_ns,
) -> dict[str, Any]:
    """Median nanoseconds a call of what ``make`` gives, sampled for about ``seconds``; with results of timed calls.

    Calls warm up until three in a row lie within 5 %, 12 at most. Each sample is of inputs of its own, drawn from
    ``seed`` and its number, so that two processes can compare the results of the calls that were timed: a call that
    gives back what an earlier one computed is found out.
    """
    once, warm = _warm_up(make, seed, clock)
    inner = max(1, SHORTEST_NS // once)
    checked = set(random.Random(seed).sample(range(MIN_SAMPLES), CHECKS))
    samples: list[float] = []
    checks: list[dict[str, Any]] = []
    busy, left = _running(), 0
    end = clock() + int(seconds * 1e9)
    while len(samples) < MIN_SAMPLES or (clock() < end and len(samples) < MAX_SAMPLES):
        seed_all(seed + len(samples))
        # How many there are differs between processes. The first inputs are the same in all: they come last.
        calls = [make() for _ in range(min(inner, DISTINCT))][::-1]
        rounds, rest = divmod(inner, len(calls))
        value: object = None
        began = clock()
        for call in calls[:rest]:
            value = call()
        for _ in range(rounds):
            for call in calls:
                value = call()
        samples.append((clock() - began) / inner)
        if len(samples) - 1 in checked:
            checks.append(result_of(value, seed, CHECKED_VALUES))
        left = max(left, _running() - busy)
        spoil(value)
    return {
        "ns": _median(samples),
        "samples": len(samples),
        "inner": inner,
        "warm_up": warm,
        "checks": checks,
        "left": left,
    }


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


def _warm_up(make: Callable[[], Callable[[], object]], seed: int, clock: Callable[[], int]) -> tuple[int, int]:
    """Nanoseconds of one warm call, and how many calls it took."""
    last: list[int] = []
    for number in range(1, WARM_UP + 1):
        seed_all(seed - number)
        call = make()
        began = clock()
        call()
        last = [*last[-2:], max(1, clock() - began)]
        if number > 3 and max(last) <= (1 + STABLE) * min(last):
            break
    return int(_median([float(ns) for ns in last])), number


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


def _seconds(began: float, now: Callable[[], float] = monotonic) -> float:
    return now() - began


def main(argv: list[str]) -> int:
    """Time every case of the workload file, or with 0 seconds compute it; 0 when the document was written."""
    fd, path, seconds, seed, source, folders = int(argv[0]), argv[1], float(argv[2]), int(argv[3]), argv[4], argv[5:]
    encode, write = json.JSONEncoder().encode, os.write
    os.set_inheritable(fd, False)
    os.chdir(source)
    guard = Guard(source, own=("__main__",))
    altered, began = guard.altered, monotonic()
    write(fd, b" ")
    # Only now: nothing of the repository can stand for a module that was imported above.
    sys.path[:0] = [os.path.normpath(os.path.join(source, folder)) for folder in folders]
    namespace: dict[str, Any] = runpy.run_path(path, run_name="smith_workload")
    results: dict[str, Any] = {}
    for number, (name, make) in enumerate(namespace["cases"]()):
        seed_all(seed + number)
        results[name] = time_case(make, seconds, seed + 1000 * number) if seconds > 0 else result_of(make()(), seed)
    used = sum(os.times()[:4])
    document = {"cases": results, "processor_s": used, "altered": altered(), "elapsed_s": _seconds(began)}
    data = encode(document).encode()
    while data:
        data = data[write(fd, data) :]
    os.close(fd)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
