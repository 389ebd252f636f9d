"""Measure a speed-up: baseline and candidate interleaved in fresh processes, with the noise floor beside it."""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from smith.errors import Unavailable
from smith.freeze.bundle import Bundle
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

METHOD = (
    f"{ROUNDS} rounds; in each, baseline and candidate in fresh processes, the order alternating; per process and case "
    f"2 warm-up calls, then samples of fresh inputs for {CASE_S} s, the median taken; ratio of baseline to candidate "
    "per round; median over rounds with a 95 % bootstrap interval; noise from baselines of neighbouring rounds; caches "
    "warm, not flushed; clocks not pinned; nothing else of smith running"
)


class CannotTime(Unavailable):
    """A workload that does not run on a side, so that there is nothing to compare."""


def measure(bench: Bench, bundle: Bundle, environment: TestEnvironment, base: str, candidate: str) -> Timing:
    """The speed-up of tree ``candidate`` over tree ``base`` on the bundle's workloads.

    Raises :class:`CannotTime` where a workload does not run.
    """
    files = [bundle.path / "tests" / "workloads" / name for name in bundle.selection.workloads]
    with (
        trial(bench, bundle, environment, base) as first,
        trial(bench, bundle, environment, candidate) as second,
        alone(bench.store.layout.quiet),
    ):
        for side in (first, second):
            if side.build_error:
                raise CannotTime(f"the tree does not build: {side.build_error}")
        baselines: list[dict[str, float]] = []
        candidates: list[dict[str, float]] = []
        for turn in range(ROUNDS):
            for side in (first, second) if turn % 2 == 0 else (second, first):
                (baselines if side is first else candidates).append(_sample(side, files))
    for figures in (*baselines, *candidates):
        if figures.keys() != baselines[0].keys():
            raise CannotTime(f"the cases differ: {', '.join(sorted(figures.keys() ^ baselines[0].keys()))}")
    speed = {c: [b[c] / s[c] for b, s in zip(baselines, candidates, strict=True)] for c in baselines[0]}
    noise = {c: [b[c] / n[c] for b, n in itertools.pairwise(baselines)] for c in baselines[0]}
    return _summary(speed, noise, bench.device)


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


def _sample(side: Trial, files: Sequence[Path]) -> dict[str, float]:
    """Nanoseconds a call by case, measured in one fresh process a workload file."""
    stage = Stage(
        side.bench.sandbox, side.place, side.environment, side.bundle.recipe, side.bench.device, side.bundle.prelude
    )
    found: dict[str, float] = {}
    for file in files:
        shutil.copy(file, side.place.lib / file.name)
        reader, writer = os.pipe()
        try:
            done = stage.run(
                stage.module(
                    "time_workload",
                    str(writer),
                    f"{stage.lib}/{file.name}",
                    str(CASE_S),
                    stage.source,
                    *side.bundle.recipe.python_path,
                ),
                Limits(wall_s=PROCESS_S),
                pass_fds=[writer],
            )
            os.close(writer)
            writer = -1
            with os.fdopen(reader, "rb") as pipe:
                reader = -1
                # One document of a few hundred bytes: it fits into the pipe, whoever wrote it.
                data = pipe.read(1 << 16)
        finally:
            for fd in (reader, writer):
                if fd >= 0:
                    os.close(fd)
        found |= _parse(data, file.name, done.ending, done.stderr.text)
    return found


def _parse(data: bytes, name: str, ending: str, words: str) -> dict[str, float]:
    try:
        cases = {str(case): float(figures["ns"]) for case, figures in json.loads(data)["cases"].items()}
        if not cases or any(not math.isfinite(ns) or ns <= 0 for ns in cases.values()):
            raise ValueError("a case took no time")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        said = words.strip().splitlines()
        raise CannotTime(
            f"the workload {name} gave no times ({ending}): {said[-1][:300] if said else error}"
        ) from error
    return cases


def _r(value: float) -> float:
    return round(value, 4)
