"""Whether a candidate is faster than its base: run in an image, where nothing of smith but its ``inside`` is there.

``python meets_target.py BASE CANDIDATE FOLDERS WORKLOAD...`` times the workload files in fresh processes of both trees,
taking turns, and prints one line in pytest's words. It measures more simply than :mod:`smith.grade.timing`: a fixed
number of rounds, and no block is void. The target: the results agree, and the lower end of the speed-up's interval is
above 1 and above the noise.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

ROUNDS = 7
CASE_S = 0.15
PROCESS_S = 120.0
RELATIVE = 1e-3
RESAMPLES = 4000
NAME = "perf::meets_target"


def sample(tree: str, folders: list[str], workload: str, seed: int, seconds: float) -> dict[str, Any]:
    """The figures of one workload in one fresh process. Raises ``ValueError`` where it does not run."""
    reader, writer = os.pipe()
    plan: dict[str, Any] = {
        "fd": writer,
        "turns": None,
        "file": workload,
        "seconds": seconds,
        "seed": seed,
        "source": tree,
    }
    plan |= {"python_path": folders, "prelude": None, "gpu": False, "cold": False}
    argv = [sys.executable, "-P", "-m", "smith.inside.time_workload", json.dumps(plan)]
    library = str(Path(__file__).resolve().parent)
    child = subprocess.Popen(argv, pass_fds=[writer], env={**os.environ, "PYTHONPATH": library}, cwd="/")
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    if child.wait(PROCESS_S) != 0:
        raise ValueError(f"{workload} does not run in {tree}")
    return dict(json.loads(said)["cases"])


def agree(base: dict[str, Any], candidate: dict[str, Any]) -> bool:
    """Whether both computed the same, within a relative tolerance."""
    if base.keys() != candidate.keys():
        return False
    for case, expected in base.items():
        right, found = expected["values"], candidate[case]["values"]
        if expected["shape"] != candidate[case]["shape"] or len(right) != len(found):
            return False
        scale = max((abs(v) for v in right if math.isfinite(v)), default=0.0)
        for want, have in zip(right, found):  # noqa: B905 - of one length, as looked at above
            near = abs(want - have) <= RELATIVE * (abs(want) + scale) if math.isfinite(want) else str(want) == str(have)
            if not near:
                return False
    return True


def interval(ratios: list[float]) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval (Efron 1979) of the median, in log space."""
    logs, draw = [math.log(r) for r in ratios], random.Random(0)
    medians = sorted(statistics.median(draw.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    return math.exp(medians[RESAMPLES // 40]), math.exp(medians[-RESAMPLES // 40 - 1])


def mean(times: dict[str, float]) -> float:
    """Geometric mean over cases."""
    return math.exp(statistics.fmean(math.log(t) for t in times.values()))


def verdict(base: str, candidate: str, folders: list[str], workloads: list[str]) -> tuple[bool, str]:
    """Whether the target is met, and the figures in one line."""

    def both(tree: str, seed: int, seconds: float) -> dict[str, Any]:
        return {k: v for w in workloads for k, v in sample(tree, folders, w, seed, seconds).items()}

    draw = random.SystemRandom()
    seed = draw.randrange(1 << 31)
    if not agree(both(base, seed, 0.0), both(candidate, seed, 0.0)):
        return False, "another result at the timed sizes"
    times: dict[str, list[float]] = {base: [], candidate: []}
    for turn in range(ROUNDS):
        seed = draw.randrange(1 << 31)
        for tree in (base, candidate) if turn % 2 == 0 else (candidate, base):
            times[tree].append(mean({case: one["ns"] for case, one in both(tree, seed, CASE_S).items()}))
    low, high = interval([b / c for b, c in zip(times[base], times[candidate])])  # noqa: B905 - both have ROUNDS
    noise = interval([one / other for one, other in pairwise(times[base])])[1]
    return low > max(1.0, noise), f"speed-up {low:.2f} to {high:.2f}, noise to {noise:.2f}"


def main(argv: list[str]) -> int:
    """Print the line; 0 where the target is met."""
    base, candidate, folders, workloads = argv[0], argv[1], argv[2].split(":"), argv[3:]
    try:
        met, detail = verdict(base, candidate, folders, workloads)
    except (ValueError, KeyError, TypeError, OSError, subprocess.SubprocessError) as error:
        met, detail = False, " ".join(str(error).split())
    print(f"{'PASSED' if met else 'FAILED'} {NAME}{'' if met else ' - ' + detail}", flush=True)
    print(f"smith: {detail}", flush=True)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
