"""Measure a speed-up: baseline and candidate interleaved in fresh processes, with the noise floor beside it.

Blocks are randomised, a block that something else disturbed is void, and measuring ends when the answer is certain or
when it costs too much.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smith.freeze.bundle import Bundle
from smith.gpus.pinned import PinnedSandbox
from smith.grade.disturbance import Watch
from smith.grade.gpu_watch import GpuWatch
from smith.grade.quiet import alone
from smith.grade.timed_processes import CannotTime, Sampled, Side, compute, time_together
from smith.grade.trial import Bench, trial
from smith.harness.environment import TestEnvironment
from smith.records.config import Config, TimingConfig
from smith.records.receipt import Timing
from smith.records.workload import Workload
from smith.score.speed import LEAST_BLOCKS, Block, speed_of, summarise

CASE_S = 0.15
"""Seconds for which one case is sampled in one process."""
MOST_BLOCKS = 40
MOST_VOID = 15
LIMIT_S = 900.0
"""After so long no further block is begun."""
METHOD = (
    "results compared first on fresh inputs; blocks of baseline, candidate and baseline again, each in a fresh process "
    "and a place of its own; {order}; per process and case up to 12 calls until warm, then samples of inputs of their "
    f"own, for {CASE_S} s a process, the lower quartile taken; results of timed calls compared between the legs; ratio "
    "of baseline (geometric mean of its two legs) to candidate per block; median over blocks with a 95 % bootstrap "
    "interval; noise from the two legs of the baseline; ended when the answer was certain; {clock}; no build or test "
    "of this data repository running beside it; {watched}"
)
TOGETHER = "the three take turns sample by sample, in an order drawn for each turn"
ONE_BY_ONE = "one after the other in an order drawn for each block"
HOST_CLOCK = "wall clock; caches warm, not flushed"
DEVICE_CLOCK = (
    "events of the device around each call, all of its streams joined, held against the wall clock of the host; caches "
    "{cache}; clocks not pinned"
)

RELATIVE = 1e-3
"""How far results at the timed sizes may lie apart, relative to the value and to the largest one."""

RECORDED = "recorded_workload.py"


class TooNoisy(CannotTime):
    """Something else disturbed every block."""


def measure(
    bench: Bench,
    bundle: Bundle,
    environment: TestEnvironment,
    base: str,
    candidate: str,
    recorded: Workload | None = None,
    *,
    limit_s: float = LIMIT_S,
) -> Timing:
    """The speed-up of tree ``candidate`` over tree ``base`` on the bundle's workloads; where it has none, on the calls
    that were ``recorded``.

    First both compute every case on the same fresh inputs, and the results are compared: what is timed must be right at
    the sizes at which it is timed. After ``limit_s`` no further block is begun. Raises :class:`CannotTime` where a
    workload does not run or results differ.
    """
    config = Config.load(bench.store.layout.config).timing
    with (
        trial(bench, bundle, environment, base) as first,
        trial(bench, bundle, environment, candidate) as second,
        trial(bench, bundle, environment, base) as again,
        alone(bench.store.layout.quiet),
    ):
        legs = [Side(first, False), Side(second, True), Side(again, False)]
        for side in legs:
            if side.trial.build_error:
                raise CannotTime(f"the tree does not build: {side.trial.build_error}", candidate=side.candidate)
        files = [bundle.path / "tests" / "workloads" / name for name in bundle.selection.workloads]
        if recorded is not None and not files:
            files = [first.place.root / RECORDED]
            files[0].write_text(as_cases(recorded), "utf-8")
        seed = secrets.randbelow(1 << 31)
        for file in files:
            compare(*(compute(side, file, seed).cases for side in legs[:2]))
        return measure_blocks(_way_of(bench, config, legs, files), limit_s)


@dataclass(frozen=True)
class Way:
    """A way to take blocks on a device: ``take`` gives, for a seed, the figures of baseline, candidate and baseline
    again; ``method`` says how, when all is done."""

    device: str
    take: Callable[[int], Sequence[Sampled]]
    watch: Watch
    order: str = TOGETHER
    clock: str = HOST_CLOCK

    @property
    def method(self) -> str:
        """How it was measured, in words."""
        return METHOD.format(order=self.order, clock=self.clock, watched=self.watch.method)


def _way_of(bench: Bench, config: TimingConfig, legs: Sequence[Side], files: Sequence[Path]) -> Way:
    """On a processor the legs take turns. A GPU is one leg's at a time: each needs its memory."""
    if not isinstance(bench.sandbox, PinnedSandbox):
        watch = Watch(foreign=config.foreign)
        return Way(bench.device, lambda seed: _together(legs, files, seed, watch), watch)
    on_gpu, cold = GpuWatch(bench.sandbox.look, foreign=config.foreign), config.gpu_cache == "cold"

    def take(seed: int) -> list[Sampled]:
        found: dict[int, Sampled] = {}
        for number in secrets.SystemRandom().sample(range(len(legs)), len(legs)):
            with on_gpu.leg():
                (found[number],) = _together([legs[number]], files, seed, on_gpu, cold=cold)
        return [found[number] for number in range(len(legs))]

    cache = "flushed before every timed call" if cold else "warm, not flushed"
    return Way(bench.device, take, on_gpu, ONE_BY_ONE, DEVICE_CLOCK.format(cache=cache))


def _together(
    legs: Sequence[Side], files: Sequence[Path], seed: int, watch: Watch, *, cold: bool = False
) -> list[Sampled]:
    """The figures of each leg over all workload files."""
    found: list[Sampled] = [{} for _ in legs]
    for file in files:
        for figures, told in zip(found, time_together(legs, file, seed, CASE_S, cold=cold), strict=True):
            figures |= told.cases
            watch.used(told.processor_s)
    return found


def as_cases(recorded: Workload) -> str:
    """Recorded calls as a workload file."""
    calls = [
        (f"{number}: {one.call}"[:200], one.call.model_dump(mode="json", exclude_defaults=True))
        for number, one in enumerate(recorded.calls, start=1)
    ]
    return (
        "import json\n\nimport torch  # before the generators are seeded\n\n"
        "from smith.inside.recorded_cases import cases_of\n\n"
        f"CALLS = json.loads({json.dumps(calls)!r})\n\n\ndef cases():\n    return cases_of(CALLS)\n"
    )


def measure_blocks(way: Way, limit_s: float = LIMIT_S) -> Timing:
    """Measure blocks until the answer is certain.

    Each leg is a fresh process, with inputs drawn from a seed that the legs of a block share. Raises
    :class:`CannotTime` where results differ, and :class:`TooNoisy` where nothing could be timed undisturbed.
    """
    blocks: list[Block] = []
    void: list[str] = []
    end = time.monotonic() + limit_s
    while len(blocks) < MOST_BLOCKS and len(void) < MOST_VOID and (not blocks or time.monotonic() < end):
        before = way.watch.moment()
        legs = way.take(secrets.randbelow(1 << 31))
        disturbed = way.watch.disturbed(before, way.watch.moment())
        block = _block(*legs)
        if blocks and blocks[0].candidate.keys() != block.candidate.keys():
            raise CannotTime("the cases differ from block to block", candidate=True)
        if disturbed is not None:
            void.append(disturbed)
            continue
        blocks.append(block)
        if len(blocks) >= LEAST_BLOCKS and speed_of(blocks).settled:
            break
    if not blocks:
        raise TooNoisy(f"all {len(void)} blocks were disturbed: {void[-1]}", candidate=False)
    return summarise(blocks, method=way.method, device=way.device, void=len(void))


def _block(first: Sampled, new: Sampled, second: Sampled) -> Block:
    """The times of one block. Raises :class:`CannotTime` where the results of timed calls differ between legs."""
    for figures, candidate in ((second, False), (new, True)):
        if figures.keys() != first.keys():
            raise CannotTime("the legs have other cases", candidate=candidate)
        for number in range(max(len(case.get("checks", ())) for case in first.values())):
            compare(_check(first, number), _check(figures, number), candidate=candidate)
    times = []
    for figures, candidate in ((first, False), (second, False), (new, True)):
        times.append({case: float(one["ns"]) for case, one in figures.items()})
        if any(not math.isfinite(ns) or ns <= 0 for ns in times[-1].values()):
            raise CannotTime("a case took no time", candidate=candidate)
    return Block((times[0], times[1]), times[2])


def _check(figures: Sampled, number: int) -> Sampled:
    """The results of the ``number``th timed call that was kept, by case."""
    nothing: dict[str, Any] = {"shape": None, "values": []}
    return {
        case: one["checks"][number] if number < len(one.get("checks", ())) else nothing for case, one in figures.items()
    }


def compare(base: Sampled, other: Sampled, *, candidate: bool = True) -> None:
    """Raise :class:`CannotTime` where the results of ``other``, the ``candidate`` or not, are not the baseline's."""
    if base.keys() != other.keys():
        raise CannotTime("the candidate has other cases", candidate=candidate)
    for case, expected in base.items():
        got = other[case]
        if got.get("shape") != expected["shape"]:
            raise CannotTime(f"{case}: a result of another shape at the timed size", candidate=candidate)
        right, found = expected["values"], got.get("values", [])
        scale = max((abs(v) for v in right if math.isfinite(v)), default=0.0)
        for want, have in zip(right, found, strict=False):
            near = abs(want - have) <= RELATIVE * (abs(want) + scale) if math.isfinite(want) else str(want) == str(have)
            if not near or len(found) != len(right):
                raise CannotTime(
                    f"{case}: a wrong result at the timed size ({have!r} for {want!r})", candidate=candidate
                )
