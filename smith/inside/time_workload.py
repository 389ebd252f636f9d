"""Time the cases of a workload file in this process and write one JSON document to a file descriptor.

Runs inside the sandbox as ``python -m smith.inside.time_workload FD FILE SECONDS SEED SOURCE FOLDER...``. The clock and
the statistics are bound before any code of the repository is imported, so replacing them later changes nothing here.
Every sample is of fresh inputs made outside the timed region; a case's figure is the median over its samples.
"""

from __future__ import annotations

import json
import os
import random
import runpy
import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

MIN_SAMPLES = 9
MAX_SAMPLES = 200
VALUES = 512


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def time_case(
    make: Callable[[], Callable[[], object]], seconds: float, clock: Callable[[], int] = perf_counter_ns
) -> dict[str, float]:
    """Median nanoseconds a call of what ``make`` gives, sampled for about ``seconds``.

    Two calls warm up. A call shorter than 50 microseconds is repeated inside one sample until the sample is long enough
    for the clock.
    """
    call = make()
    call()
    began = clock()
    call()
    once = max(1, clock() - began)
    inner = max(1, 50_000 // once)
    samples: list[float] = []
    end = clock() + int(seconds * 1e9)
    while len(samples) < MIN_SAMPLES or (clock() < end and len(samples) < MAX_SAMPLES):
        call = make()
        began = clock()
        for _ in range(inner):
            call()
        samples.append((clock() - began) / inner)
    return {"ns": _median(samples), "samples": float(len(samples)), "inner": float(inner)}


def seed_all(seed: int) -> None:
    """Seed the default generators of what is loaded: both sides of a comparison draw the same inputs."""
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def result_of(value: Any, seed: int) -> dict[str, Any]:
    """Shape and up to ``VALUES`` values, at places drawn from ``seed``, of a tensor, number or sequence of them."""
    if isinstance(value, (tuple, list)):
        parts = [result_of(part, seed) for part in value]
        return {"shape": [p["shape"] for p in parts], "values": [v for p in parts for v in p["values"]]}
    if hasattr(value, "detach"):
        value = value.detach().cpu().double().numpy()
    if hasattr(value, "ravel"):
        flat, shape = value.ravel(), list(value.shape)
    else:
        flat, shape = [value], []
    places = random.Random(seed).sample(range(len(flat)), min(len(flat), VALUES))
    return {"shape": shape, "values": [float(flat[place]) for place in places]}


def main(argv: list[str]) -> int:
    """Time every case of the workload file, or with 0 seconds compute it; 0 when the document was written."""
    fd, path, seconds, seed, source, folders = int(argv[0]), argv[1], float(argv[2]), int(argv[3]), argv[4], argv[5:]
    os.chdir(source)
    # Only now: nothing of the repository can stand for a module that was imported above.
    sys.path[:0] = [os.path.normpath(os.path.join(source, folder)) for folder in folders]
    namespace: dict[str, Any] = runpy.run_path(path, run_name="smith_workload")
    results: dict[str, Any] = {}
    for number, (name, make) in enumerate(namespace["cases"]()):
        seed_all(seed + number)
        results[name] = time_case(make, seconds) if seconds > 0 else result_of(make()(), seed)
    data = json.dumps({"cases": results}).encode()
    while data:
        data = data[os.write(fd, data) :]
    os.close(fd)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
