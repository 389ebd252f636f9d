"""Measure a speed-up: baseline and candidate interleaved in fresh processes, with the noise floor beside it."""

from __future__ import annotations

import itertools
import json
import math
import os
import secrets
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from smith.errors import Unavailable
from smith.freeze.bundle import Bundle
from smith.gpus.base import is_gpu
from smith.grade.quiet import alone
from smith.grade.trial import Bench, Trial, trial
from smith.harness.environment import TestEnvironment
from smith.harness.stage import Stage
from smith.records.receipt import TimedCase, Timing
from smith.sandbox.base import Limits
from smith.score.intervals import geometric_mean, median_ratio

ROUNDS = 7
CASE_S = 0.15
"""Seconds for which one case is sampled in one process."""
PROCESS_S = 120.0
MAX_BYTES = 4 << 20

METHOD = (
    f"results compared first on fresh inputs; {ROUNDS} rounds; in each, baseline and candidate in fresh processes, the "
    f"order alternating; per process and case 2 warm-up calls, then samples of fresh inputs for {CASE_S} s, the median "
    "taken; ratio of baseline to candidate per round; median over rounds with a 95 % bootstrap interval; noise from "
    "baselines of neighbouring rounds; caches warm, not flushed; clocks not pinned; no build or test of this data "
    "repository running beside it"
)


RELATIVE = 1e-3
"""How far results at the timed sizes may lie apart, relative to the value and to the largest one."""


class CannotTime(Unavailable):
    """A workload that does not run on a side, or gives another result there: nothing to compare.

    ``candidate`` says whether the candidate is the one at fault.
    """

    def __init__(self, message: str, *, candidate: bool) -> None:
        super().__init__(message)
        self.candidate = candidate


def measure(bench: Bench, bundle: Bundle, environment: TestEnvironment, base: str, candidate: str) -> Timing:
    """The speed-up of tree ``candidate`` over tree ``base`` on the bundle's workloads.

    First both compute every case on the same fresh inputs, and the results are compared: what is timed must be right at
    the sizes at which it is timed. Raises :class:`CannotTime` where a workload does not run or results differ.
    """
    if is_gpu(bench.device):
        # A clock of the host beside a GPU that works on its own would measure how fast launches are queued.
        raise CannotTime(f"speed on {bench.device} cannot be measured by this version", candidate=False)
    files = [bundle.path / "tests" / "workloads" / name for name in bundle.selection.workloads]
    with (
        trial(bench, bundle, environment, base) as first,
        trial(bench, bundle, environment, candidate) as second,
        alone(bench.store.layout.quiet),
    ):
        for side in (first, second):
            if side.build_error:
                raise CannotTime(f"the tree does not build: {side.build_error}", candidate=side is second)

        def sample(side: Trial, seed: int, seconds: float) -> dict[str, dict[str, Any]]:
            return {
                case: figures
                for file in files
                for case, figures in _sample(side, file, seed, seconds, candidate=side is second).items()
            }

        seed = secrets.randbelow(1 << 31)
        compare(sample(first, seed, 0.0), sample(second, seed, 0.0))
        baselines: list[dict[str, float]] = []
        candidates: list[dict[str, float]] = []
        for turn in range(ROUNDS):
            seed = secrets.randbelow(1 << 31)
            for side in (first, second) if turn % 2 == 0 else (second, first):
                times = {case: float(figures["ns"]) for case, figures in sample(side, seed, CASE_S).items()}
                if any(not math.isfinite(ns) or ns <= 0 for ns in times.values()):
                    raise CannotTime("a case took no time", candidate=side is second)
                (baselines if side is first else candidates).append(times)
    for figures in (*baselines, *candidates):
        if figures.keys() != baselines[0].keys():
            raise CannotTime("the cases differ from round to round", candidate=figures in candidates)
    speed = {c: [b[c] / s[c] for b, s in zip(baselines, candidates, strict=True)] for c in baselines[0]}
    noise = {c: [b[c] / n[c] for b, n in itertools.pairwise(baselines)] for c in baselines[0]}
    return _summary(speed, noise, bench.device)


def compare(base: dict[str, dict[str, Any]], candidate: dict[str, dict[str, Any]]) -> None:
    """Raise :class:`CannotTime` where the candidate's results are not the baseline's."""
    if base.keys() != candidate.keys():
        raise CannotTime("the candidate has other cases", candidate=True)
    for case, expected in base.items():
        got = candidate[case]
        if got.get("shape") != expected["shape"]:
            raise CannotTime(f"{case}: a result of another shape at the timed size", candidate=True)
        right, found = expected["values"], got.get("values", [])
        scale = max((abs(v) for v in right if math.isfinite(v)), default=0.0)
        for want, have in zip(right, found, strict=False):
            near = abs(want - have) <= RELATIVE * (abs(want) + scale) if math.isfinite(want) else str(want) == str(have)
            if not near or len(found) != len(right):
                raise CannotTime(f"{case}: a wrong result at the timed size ({have!r} for {want!r})", candidate=True)


def _summary(speed: dict[str, list[float]], noise: dict[str, list[float]], device: str) -> Timing:
    cases = []
    for name, ratios in speed.items():
        ratio, low, high = median_ratio(ratios)
        cases.append(TimedCase(case=name, ratio=_r(ratio), low=_r(low), high=_r(high)))
    _, low, high = median_ratio(_by_round(speed))
    _, noise_low, noise_high = median_ratio(_by_round(noise))
    return Timing(
        method=METHOD,
        device=device,
        rounds=ROUNDS,
        noise_low=_r(noise_low),
        noise_high=_r(noise_high),
        cases=tuple(cases),
        geomean=_r(geometric_mean([c.ratio for c in cases])),
        low=_r(low),
        high=_r(high),
        worst=min(c.ratio for c in cases),
    )


def _by_round(ratios: dict[str, list[float]]) -> Sequence[float]:
    """The geometric mean over cases of each round."""
    return [geometric_mean(values) for values in zip(*ratios.values(), strict=True)]


def _sample(side: Trial, file: Path, seed: int, seconds: float, *, candidate: bool) -> dict[str, dict[str, Any]]:
    """What one fresh process says of the cases of one workload file: times, or with no ``seconds`` results."""
    stage = Stage(
        side.bench.sandbox, side.place, side.environment, side.bundle.recipe, side.bench.device, side.bundle.prelude
    )
    shutil.copy(file, side.place.lib / file.name)
    reader, writer = os.pipe()
    with ThreadPoolExecutor(1) as pool, os.fdopen(reader, "rb") as pipe:
        # Read all the while: results may be more than a pipe holds.
        data = pool.submit(pipe.read, MAX_BYTES)
        try:
            done = stage.run(
                stage.module(
                    "time_workload",
                    *(str(writer), f"{stage.lib}/{file.name}", str(seconds), str(seed), stage.source),
                    *side.bundle.recipe.python_path,
                ),
                Limits(wall_s=PROCESS_S),
                pass_fds=[writer],
            )
        finally:
            os.close(writer)
        said = data.result()
    try:
        cases = json.loads(said)["cases"]
        if not cases or not all(isinstance(figures, dict) for figures in cases.values()):
            raise ValueError("no cases")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        words = done.stderr.text.strip().splitlines()
        detail = words[-1][:300] if words else "nothing was said"
        raise CannotTime(
            f"the workload {file.name} does not run ({done.ending}): {detail}", candidate=candidate
        ) from error
    return dict(cases)


def _r(value: float) -> float:
    return round(value, 4)
