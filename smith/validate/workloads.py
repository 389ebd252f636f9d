"""Record a workload: run the tests that count on the reference, and see which of the calls can be made again."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from smith import __version__
from smith.errors import PatchError, RecordError
from smith.freeze.bundle import Bundle
from smith.git.patches import apply
from smith.grade.launched import are_counted
from smith.grade.oracle import first_difference, fresh, limit_of, replayed
from smith.grade.trial import Bench, reference_tree, trial
from smith.harness.environment import TestEnvironment
from smith.harness.replaying import Made
from smith.harness.run import Record
from smith.oracle.arrays import EPSILON
from smith.oracle.compare import Outcome, difference, moved, tells, too_wide
from smith.oracle.values import Variation, draw, upcast
from smith.records.receipt import Receipt
from smith.records.results import Outcome as TestOutcome
from smith.records.workload import Call, CallSpec, LeftOut, RecordedCall, Workload, WorkloadNote

MOST = 24
"""Calls of one task."""
MOST_S = 20.0
"""Seconds that they take together, as the tests made them; a single one may take longer."""
MOST_BYTES = 64 << 20
CRASHES = 4
"""Calls that may end the reference's process before the others are given up."""

Step = Callable[[str], None]


class Counting(Protocol):
    """Tests that count: a receipt has them, and findings do."""

    @property
    def fail_to_pass(self) -> Sequence[str]: ...

    @property
    def pass_to_pass(self) -> Sequence[str]: ...


def record(bench: Bench, bundle: Bundle, environment: TestEnvironment, tests: Counting, step: Step) -> Workload:
    """The calls of the tests that count on the reference, replayed there and on the base."""
    step("recording calls")
    ids = [*tests.fail_to_pass, *tests.pass_to_pass]
    kernels = tuple(sorted(f"{k.path}::{symbol}" for k in bundle.spec.kernels for symbol in k.code))
    counted = are_counted(bundle, bench.device)
    asked = Record(
        excluded=bundle.selection.places,
        kernels=kernels,
        files=tuple(sorted({k.path for k in bundle.spec.kernels})),
        counted=counted,
    )
    try:
        tree = reference_tree(bench.store, bundle)
        reference = apply(bench.store.scratch, bundle.spec.source.tree, bundle.reference)
    except PatchError as error:
        raise RecordError(f"{bundle.id}: the reference does not apply: {error}") from error
    with trial(bench, bundle, environment, tree) as place:
        run = place.run(ids, record=asked) if place.build_error is None else None
    found = list(run.recorded) if run is not None else []
    left = list(run.unrecorded) if run is not None else []
    missed = [r.id for r in run.results if r.outcome is not TestOutcome.PASSED] if run is not None else ids
    if missed:
        left.append(LeftOut(entry="", reason="test_failed", detail=f"e.g. {missed[0]}"[:300], count=len(missed)))
    chosen, too_many = choose(found, tests.fail_to_pass)
    left += too_many
    calls: list[Call] = []
    if chosen:
        step(f"replaying {len(chosen)} calls")
        calls, unfit = _calibrated(bench, bundle, environment, (reference, bundle.spec.source.tree), chosen)
        left += unfit
    return Workload(
        task=bundle.id,
        tree=bundle.tree,
        device=bench.device,
        counted=counted,
        calls=tuple(calls),
        left_out=tuple(_together(left)),
        smith=__version__,
    )


def noted(receipt: Receipt, workload: Workload) -> Receipt:
    """The receipt with its workload named in it."""
    return receipt.model_copy(update={"workload": WorkloadNote.of(workload)})


def choose(found: Iterable[RecordedCall], first: Sequence[str] = ()) -> tuple[list[RecordedCall], list[LeftOut]]:
    """At most :data:`MOST` calls, spread over entries and element types, those of the tests ``first`` first."""
    distinct = {one.call.signature: one for one in reversed(list(found))}
    groups: dict[tuple[str, tuple[str, ...]], list[RecordedCall]] = {}
    for one in reversed(distinct.values()):
        types = tuple(sorted({tensor.dtype for tensor in one.call.tensors}))
        groups.setdefault((one.call.entry, types), []).append(one)
    for some in groups.values():
        some.sort(key=lambda one: one.test not in first)
    chosen: list[RecordedCall] = []
    left: list[LeftOut] = []
    seconds, size = 0.0, 0
    for turn in range(max(map(len, groups.values()), default=0)):
        for some in groups.values():
            if turn >= len(some):
                continue
            one = some[turn]
            weight = sum(_bytes(one.call))
            over = (turn > 0 and seconds + one.seconds > MOST_S) or size + weight > MOST_BYTES
            if len(chosen) >= MOST or over:
                left.append(LeftOut(entry=one.call.entry, reason="enough"))
                continue
            chosen.append(one)
            seconds, size = seconds + one.seconds, size + weight
    return chosen, left


def _bytes(call: CallSpec) -> Iterable[int]:
    return (len(blob) for blob in draw(call, 0, 0, 0))


def _calibrated(
    bench: Bench,
    bundle: Bundle,
    environment: TestEnvironment,
    trees: tuple[str, str],
    chosen: Sequence[RecordedCall],
) -> tuple[list[Call], list[LeftOut]]:
    """The calls that the reference repeats, with what it takes to tell them apart; and those that it does not."""
    reference, base = trees
    seed = int(bundle.tree[:12], 16)
    specs = [one.call for one in chosen]
    limit = limit_of([one.seconds for one in chosen])
    tried = tried_on_reference(Side(bench, bundle, environment, reference), list(enumerate(specs)), seed, limit)
    of_base = Side(bench, bundle, environment, base).replayed(fresh(specs, seed), 1, limit)

    calls, left = [], []
    for number, (one, done) in enumerate(zip(chosen, tried, strict=True)):
        if done.reason:
            left.append(LeftOut(entry=one.call.entry, reason=done.reason, detail=done.detail[:300]))
            continue
        call = Call(call=one.call, test=one.test, seconds=max(o.seconds for o in done.want), errors=done.errors)
        base_differs = first_difference(call, done.want, of_base[number])
        calls.append(call.model_copy(update={"base": base_differs[:300]}))
    return calls, left


@dataclass(frozen=True)
class Side:
    """A tree without hidden tests on which calls are made."""

    bench: Bench
    bundle: Bundle
    environment: TestEnvironment
    tree: str

    def replayed(
        self,
        calls: Sequence[Made],
        seed: int,
        limit: float,
        crashes: int = CRASHES,
        most_s: float = math.inf,
    ) -> list[list[Outcome]]:
        """What ``calls`` give, each within ``limit`` seconds on average; ``seed`` is that of global generators."""
        where = (self.bench, self.bundle, self.environment, self.tree)
        return replayed(*where, calls, seed=seed, call_s=limit, crashes=crashes, most_s=most_s)


@dataclass(frozen=True)
class Tried:
    """What the reference gave in one call, how far each result moves, and why nothing can be held against it."""

    want: Sequence[Outcome]
    errors: dict[str, float]
    reason: str = ""
    detail: str = ""


def tried_on_reference(
    reference: Side,
    specs: Sequence[tuple[int, CallSpec]],
    seed: int,
    limit: float,
    *,
    silent: Collection[int] = (),
) -> list[Tried]:
    """Whether the reference repeats calls, given with the number that their values are drawn by, and how exactly.

    Those at the places ``silent`` need not give any finite number.
    """
    plain = [Made(spec, drawn(spec, seed, number)) for number, spec in specs]
    wanted = reference.replayed(plain, 1, limit)
    # Another process, other global seeds, the passes the other way round; then the same values rounded otherwise.
    swapped = [Made(made.call, made.passes[::-1]) for made in plain]
    varied = [_varied(spec, spec, seed, number, rounded=True) for number, spec in specs]
    raised = [
        (place, _varied(wide, spec, seed, number, rounded=False))
        for place, (number, spec) in enumerate(specs)
        if (wide := upcast(spec)) is not None
    ]
    again = reference.replayed([*swapped, *varied, *(made for _, made in raised)], 2, limit)
    repeats, rounded = again[: len(specs)], again[len(specs) : 2 * len(specs)]
    single = {place: again[2 * len(specs) + turn] for turn, (place, _) in enumerate(raised)}
    tried = []
    for place, (_, spec) in enumerate(specs):
        errors, why = _errors(wanted[place], rounded[place], single.get(place))
        reason, detail = _unfit(spec, wanted[place], repeats[place], errors, why, silent=place in silent)
        tried.append(Tried(wanted[place], errors, reason, detail))
    return tried


def drawn(call: CallSpec, seed: int, number: int) -> tuple[tuple[bytes, ...], ...]:
    """The values of both passes."""
    return tuple(tuple(draw(call, seed, number, turn)) for turn in range(2))


def _varied(call: CallSpec, drawn_as: CallSpec, seed: int, number: int, *, rounded: bool) -> Made:
    variation: Variation = "rounded" if rounded else "upcast"
    return Made(call, tuple(tuple(draw(drawn_as, seed, number, turn, variation)) for turn in range(2)))


def _errors(
    want: Sequence[Outcome], rounded: Sequence[Outcome], single: Sequence[Outcome] | None
) -> tuple[dict[str, float], str]:
    """By result, how far the reference moves; and why nobody can say, where nobody can."""
    errors: dict[str, float] = {}
    for turn, one in enumerate(want):
        wide = moved(one, single[turn]) if single is not None and turn < len(single) else None
        found = wide if wide is not None else moved(one, rounded[turn]) if turn < len(rounded) else None
        if found is None:
            return {}, "a change in the last place of its inputs gives a result of another kind"
        for name, error in found.items():
            errors[name] = float(f"{max(errors.get(name, 0.0), error):.3g}")
    return errors, ""


def _unfit(
    call: CallSpec,
    want: Sequence[Outcome],
    repeat: Sequence[Outcome],
    errors: dict[str, float],
    why: str,
    *,
    silent: bool,
) -> tuple[str, str]:
    """Why a call is no part of the workload, typed and in words; empty where it is."""
    failed = [one.error for one in want if one.error]
    if failed:
        return "not_replayable", failed[0]
    if not silent and not all(map(tells, want)):
        return "not_finite", "no result holds a finite number"
    if why:
        return "ill_conditioned", why
    floats = any(tensor.dtype in EPSILON for tensor in call.tensors)
    if len(repeat) != len(want):
        return "not_reproducible", repeat[0].error if repeat else "nothing came back"
    for one, other in zip(want, reversed(repeat), strict=True):
        bare = replace(one, overwritten=()), replace(other, overwritten=())
        if words := difference(*bare, errors, floats=floats):
            return "not_reproducible", words
    if any(too_wide(one, errors) for one in want):
        worst = max(errors, key=lambda name: errors[name])
        return "ill_conditioned", f"{worst} moves by {errors[worst]:.0%} of its size"
    return "", ""


def _together(left: Iterable[LeftOut]) -> list[LeftOut]:
    found: dict[tuple[str, str, str], int] = {}
    for one in left:
        key = (one.entry, one.reason, one.detail)
        found[key] = found.get(key, 0) + one.count
    return [LeftOut(entry=e, reason=r, detail=d, count=n) for (e, r, d), n in sorted(found.items())]
