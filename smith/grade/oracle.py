"""The sealed oracle: a submission and the reference make the same calls on fresh inputs, each in a sandbox of its own,
and this process, outside of both, compares what came out.

The submission's side is given inputs and nothing else: its tree holds neither the hidden tests nor the reference, and
no expected value exists in any process that it can reach. The seed is drawn when the submission is there.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from smith.freeze.bundle import Bundle
from smith.git.patches import apply
from smith.gpus.base import is_gpu
from smith.grade.quiet import shared
from smith.grade.trial import Bench, trial
from smith.harness.environment import TestEnvironment
from smith.harness.replaying import Made, replay
from smith.harness.stage import Stage
from smith.oracle.arrays import EPSILON
from smith.oracle.compare import Outcome, difference
from smith.oracle.values import draw
from smith.records.workload import Call, CallSpec, OracleReport, Workload

LEAST_S = 20.0
SLOWER = 8.0
"""How much longer than when it was recorded a call may take, beside ``LEAST_S``: this machine may be busier."""
MOST_TOLD = 10


def fresh(calls: Sequence[CallSpec], seed: int) -> list[Made]:
    """Calls with values drawn from ``seed``: two passes each."""
    return [
        Made(call, tuple(tuple(draw(call, seed, number, turn)) for turn in range(2)))
        for number, call in enumerate(calls)
    ]


def replayed(
    bench: Bench,
    bundle: Bundle,
    environment: TestEnvironment,
    tree: str,
    calls: Sequence[Made],
    *,
    seed: int,
    call_s: float,
    crashes: int = 0,
    most_s: float = math.inf,
) -> list[list[Outcome]]:
    """What ``calls`` give on ``tree``, which holds no hidden tests, in a fresh place."""
    with trial(bench, bundle, environment, tree, bare=True) as side:
        if side.build_error:
            return [[Outcome(error=f"does not build: {side.build_error}", reached=False)] for _ in calls]
        stage = Stage(bench.sandbox, side.place, environment, bundle.recipe, bench.device, prelude=bundle.prelude)
        with shared(bench.store.layout.quiet):
            return replay(stage, calls, seed=seed, call_s=call_s, crashes=crashes, most_s=most_s)


def limit_of(calls: Sequence[float]) -> float:
    """Seconds that one call may take on average, from those that they took when they were recorded."""
    return LEAST_S + SLOWER * sum(calls) / max(1, len(calls))


def ask(
    bench: Bench,
    bundle: Bundle,
    environment: TestEnvironment,
    workload: Workload,
    submission: str,
    *,
    seed: int | None = None,
    step: Callable[[str], None] = lambda text: None,
) -> OracleReport:
    """Hold the tree ``submission`` against the reference on every call of ``workload``; whatever it does is a result.

    ``seed`` is drawn where none is given.
    """
    step("oracle")
    began = time.monotonic()
    seed = secrets.randbelow(1 << 62) if seed is None else seed
    calls = fresh([one.call for one in workload.calls], seed)
    limit = limit_of([one.seconds for one in workload.calls])
    reference = apply(bench.store.scratch, bundle.spec.source.tree, bundle.reference)

    def side(tree: str) -> list[list[Outcome]]:
        return replayed(bench, bundle, environment, tree, calls, seed=seed % (1 << 31), call_s=limit)

    # A GPU is for one at a time.
    with ThreadPoolExecutor(1 if is_gpu(bench.device) else 2) as pool:
        judge, subject = pool.submit(side, reference), pool.submit(side, submission)
        wanted, got = judge.result(), subject.result()
    skipped, differences, agreed = [], [], 0
    for call, want, have in zip(workload.calls, wanted, got, strict=True):
        why = unfit(want)
        if why:
            skipped.append(f"{call.call}: the reference {why}")
        elif words := first_difference(call, want, have):
            differences.append(f"{call.call}: {words}")
        else:
            agreed += 1
    return OracleReport(
        seed=seed,
        calls=len(workload.calls),
        agreed=agreed,
        skipped=tuple(skipped[:MOST_TOLD]),
        differences=tuple(differences[:MOST_TOLD]),
        seconds=round(time.monotonic() - began, 2),
    )


def unfit(outcomes: Sequence[Outcome]) -> str:
    """Why there is nothing to compare with; empty where there is."""
    errors = [one.error for one in outcomes if one.error]
    return f"raises {errors[0]}" if errors else ""


def first_difference(call: Call, want: Sequence[Outcome], got: Sequence[Outcome]) -> str:
    """In what two sides differ in one call, with the pass in which they do; empty where they do not."""
    floats = any(tensor.dtype in EPSILON for tensor in call.call.tensors)
    for turn, one in enumerate(want):
        other = got[turn] if turn < len(got) else Outcome(error=got[-1].error if got else "nothing")
        if words := difference(one, other, call.errors, floats=floats):
            return words if turn == 0 else f"called again with other values: {words}"
    return ""
