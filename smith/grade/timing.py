"""Measure a speed-up: baseline and candidate interleaved in fresh processes, with the noise floor beside it.

Blocks are randomised, a block that something else disturbed is void, and measuring ends when the answer is certain or
when it costs too much.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

from smith.errors import Unavailable
from smith.freeze.bundle import Bundle
from smith.gpus.base import is_gpu
from smith.grade.disturbance import Watch
from smith.grade.quiet import alone
from smith.grade.trial import Bench, Trial, trial
from smith.harness.environment import TestEnvironment
from smith.harness.stage import Stage
from smith.records.config import Config
from smith.records.receipt import Timing
from smith.records.workload import Workload
from smith.sandbox.base import Limits
from smith.score.speed import LEAST_BLOCKS, Block, speed_of, summarise

CASE_S = 0.15
"""Seconds for which one case is sampled in one process."""
MOST_BLOCKS = 25
MOST_VOID = 15
LIMIT_S = 900.0
"""After so long no further block is begun."""
PROCESS_S = 120.0
MAX_BYTES = 4 << 20
SLOWEST, SLACK_S = 0.75, 1.0
"""How far a timed process's clock may be from ours over its whole life."""

METHOD = (
    "results compared first on fresh inputs; blocks of baseline, candidate and baseline again in random order, each in "
    f"a fresh process; per process and case up to 12 calls until warm, then samples of inputs of their own for {CASE_S}"
    " s, the median taken; results of timed calls compared between the legs; ratio of baseline (geometric mean of its "
    "two legs) to candidate per block; median over blocks with a 95 % bootstrap interval; noise from the two legs of "
    "the baseline; ended when the answer was certain; caches warm, not flushed; wall clock; no build or test of this "
    "data repository running beside it"
)
WATCHED = "blocks in which others used more than {:.0%} of the processors or the clock drifted by 10 % are void"
UNWATCHED = "what else the machine did is not known"

RELATIVE = 1e-3
"""How far results at the timed sizes may lie apart, relative to the value and to the largest one."""

RECORDED = "recorded_workload.py"

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
    if is_gpu(bench.device):
        # A clock of the host beside a GPU that works on its own would measure how fast launches are queued.
        raise CannotTime(f"speed on {bench.device} cannot be measured by this version", candidate=False)
    files = [bundle.path / "tests" / "workloads" / name for name in bundle.selection.workloads]
    with (
        trial(bench, bundle, environment, base) as first,
        trial(bench, bundle, environment, candidate) as second,
        alone(bench.store.layout.quiet),
    ):
        if recorded is not None and not files:
            files = [first.place.root / RECORDED]
            files[0].write_text(as_cases(recorded), "utf-8")
        for side in (first, second):
            if side.build_error:
                raise CannotTime(f"the tree does not build: {side.build_error}", candidate=side is second)

        watch = Watch(foreign=Config.load(bench.store.layout.config).timing.foreign)

        def sample(side: Trial, seed: int, seconds: float) -> Sampled:
            found: Sampled = {}
            for file in files:
                cases, used = _sample(side, file, seed, seconds, candidate=side is second)
                found |= cases
                watch.used(used)
            return found

        seed = secrets.randbelow(1 << 31)
        compare(sample(first, seed, 0.0), sample(second, seed, 0.0))
        return measure_blocks(
            bench.device, lambda leg, seed: sample(second if leg else first, seed, CASE_S), watch, limit_s
        )


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


def measure_blocks(device: str, leg: Callable[[bool, int], Sampled], watch: Watch, limit_s: float = LIMIT_S) -> Timing:
    """Measure blocks until the answer is certain. ``leg`` samples the candidate (True) or the baseline.

    Each leg is a fresh process, with inputs drawn from a seed that the legs of a block share. Raises
    :class:`CannotTime` where results differ, and :class:`TooNoisy` where nothing could be timed undisturbed.
    """
    blocks: list[Block] = []
    void: list[str] = []
    end = time.monotonic() + limit_s
    draw = secrets.SystemRandom()
    while len(blocks) < MOST_BLOCKS and len(void) < MOST_VOID and (not blocks or time.monotonic() < end):
        order = [False, True, False]
        draw.shuffle(order)
        seed = secrets.randbelow(1 << 31)
        before = watch.moment()
        legs = [(candidate, leg(candidate, seed)) for candidate in order]
        disturbed = watch.disturbed(before, watch.moment())
        block = _block(legs)
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
    method = f"{METHOD}; {WATCHED.format(watch.foreign) if watch.knows else UNWATCHED}"
    return summarise(blocks, method=method, device=device, void=len(void))


def _block(legs: Sequence[tuple[bool, Sampled]]) -> Block:
    """The times of one block. Raises :class:`CannotTime` where the results of timed calls differ between legs."""
    first, second = (figures for candidate, figures in legs if not candidate)
    (new,) = (figures for candidate, figures in legs if candidate)
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


def _sample(side: Trial, file: Path, seed: int, seconds: float, *, candidate: bool) -> tuple[Sampled, float]:
    """What one fresh process says of the cases of one workload file: times, or with no ``seconds`` results; and the
    processor time that it says it took."""
    stage = Stage(
        side.bench.sandbox, side.place, side.environment, side.bundle.recipe, side.bench.device, side.bundle.prelude
    )
    shutil.copy(file, side.place.lib / file.name)
    reader, writer = os.pipe()
    with ThreadPoolExecutor(1) as pool, os.fdopen(reader, "rb") as pipe:
        # Read all the while: results may be more than a pipe holds.
        data = pool.submit(_read, pipe)
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
        said, heard_s = data.result()
    try:
        document = json.loads(said)
        cases, used = document["cases"], float(document["processor_s"])
        if not cases or not all(isinstance(figures, dict) for figures in cases.values()):
            raise ValueError("no cases")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        words = done.stderr.text.strip().splitlines()
        detail = words[-1][:300] if words else "nothing was said"
        raise CannotTime(
            f"the workload {file.name} does not run ({done.ending}): {detail}", candidate=candidate
        ) from error
    fault = _fault(said, document, heard_s)
    if fault:
        raise Tampered(f"the workload {file.name}: {fault}", candidate=candidate)
    return dict(cases), used


def _read(pipe: BinaryIO) -> tuple[bytes, float]:
    """All that is sent, and the seconds from the first byte of it to the last by our own clock."""
    found, first, last = b"", 0.0, 0.0
    while len(found) < MAX_BYTES and (data := os.read(pipe.fileno(), 1 << 16)):
        last = time.monotonic()
        first = first or last
        found += data
    return found, last - first


def _fault(said: bytes, document: dict[str, Any], heard_s: float) -> str:
    """What of a timed process's own account cannot be; empty where all is well."""
    if said[:1] != b" " or said[1:2] == b" ":
        return "the process was begun anew while it was timed"
    altered = document.get("altered")
    if not isinstance(altered, list) or altered:
        return f"altered {', '.join(map(str, altered[:5])) if isinstance(altered, list) else 'the report'}"
    elapsed = document.get("elapsed_s")
    if not isinstance(elapsed, float) or not heard_s * SLOWEST - SLACK_S <= elapsed <= heard_s / SLOWEST + SLACK_S:
        return f"its clock says {elapsed!r:.10} s where ours says {heard_s:.2f} s"
    for case, figures in document["cases"].items():
        if figures.get("left", 0):
            return f"{case}: threads or processes go on working when the call has returned"
    return ""
