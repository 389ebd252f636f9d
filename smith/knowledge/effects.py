"""From graded uses to an outcome each, and to effects with their intervals: pure functions, repeated by every check."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from smith.records.card import Effect
from smith.records.grade import GradeVerdict
from smith.records.receipt import Answer
from smith.records.sealed import Control, Speed, Use, UseOutcome
from smith.score.intervals import geometric_mean
from smith.score.shares import wilson
from smith.score.speedups import geomean_over

COUNTED = frozenset({GradeVerdict.SOLVED, GradeVerdict.FAILED, GradeVerdict.TIMEOUT})
"""Verdicts that say something of a lever; a patch that does not apply, tampering and faults of a machine do not."""
_DIGITS = 4


def outcome(verdict: GradeVerdict, speed: Speed | None, control: Control | None) -> UseOutcome:
    """What one use came to.

    With a control, a pair is told: a win is solved where the control was not. Without one it is about speed: a win is
    solved with a lower end of the interval above 1, no effect is an interval that holds 1, all else is a loss.
    """
    solved = verdict is GradeVerdict.SOLVED
    if control is not None:
        theirs = control.verdict is GradeVerdict.SOLVED
        if solved == theirs:
            return UseOutcome.NO_EFFECT
        return UseOutcome.WIN if solved else UseOutcome.LOSS
    if speed is None or speed.high < 1:
        return UseOutcome.LOSS
    if solved and speed.low > 1 and speed.answer in (None, Answer.FASTER):
        return UseOutcome.WIN
    return UseOutcome.NO_EFFECT


def effects_of(uses: Iterable[Use]) -> tuple[Effect, ...]:
    """What uses of the lever come to, one effect a device and measure: devices are never put together."""
    by_device: defaultdict[str, list[Use]] = defaultdict(list)
    for use in uses:
        if use.pulled:
            by_device[use.device].append(use)
    found = []
    for device, some in sorted(by_device.items()):
        timed = [use for use in some if use.control is None and use.speed is not None]
        paired = [use for use in some if use.control is not None]
        if timed:
            found.append(_speedup(device, timed))
        if paired:
            found.append(_difference(device, paired))
    return tuple(found)


def _speedup(device: str, uses: Sequence[Use]) -> Effect:
    """All uses whose speed was measured, faster or not: leaving the slower ones out would flatter every lever."""
    tasks: defaultdict[str, list[Speed]] = defaultdict(list)
    for use in uses:
        if use.speed is not None:
            tasks[use.task].append(use.speed)
    pooled = geomean_over([geometric_mean([s.ratio for s in tasks[task]]) for task in sorted(tasks)])
    speeds = [s for some in tasks.values() for s in some]
    low = pooled.low if pooled.low is not None else min(s.low for s in speeds)
    high = pooled.high if pooled.high is not None else max(s.high for s in speeds)
    return _effect("speedup", pooled.ratio, low, high, device, len(tasks), len(speeds))


def _difference(device: str, uses: Sequence[Use]) -> Effect:
    """Difference of two shares with the hybrid score interval (Newcombe 1998, method 10), which takes the arms for
    independent and so is the wider one for pairs that are alike."""
    ours = wilson(sum(use.verdict is GradeVerdict.SOLVED for use in uses), len(uses))
    theirs = wilson(sum(_control_solved(use) for use in uses), len(uses))
    middle = ours.share - theirs.share
    low = middle - math.hypot(ours.share - ours.low, theirs.high - theirs.share)
    high = middle + math.hypot(ours.high - ours.share, theirs.share - theirs.low)
    return _effect("solve_difference", middle, low, high, device, len({use.task for use in uses}), len(uses))


def _control_solved(use: Use) -> bool:
    return use.control is not None and use.control.verdict is GradeVerdict.SOLVED


def _effect(measure: str, value: float, low: float, high: float, device: str, tasks: int, uses: int) -> Effect:
    return Effect.model_validate(
        {
            "measure": measure,
            "value": round(value, _DIGITS),
            "low": round(low, _DIGITS),
            "high": round(high, _DIGITS),
            "device": device,
            "tasks": tasks,
            "uses": uses,
        }
    )


def same_effects(first: Sequence[Effect], second: Sequence[Effect]) -> bool:
    """Whether they agree but for the last digit, which may differ between machines."""
    if len(first) != len(second):
        return False
    return all(
        (a.measure, a.device, a.tasks, a.uses) == (b.measure, b.device, b.tasks, b.uses)
        and all(
            math.isclose(x, y, rel_tol=1e-3, abs_tol=2 * 10**-_DIGITS)
            for x, y in ((a.value, b.value), (a.low, b.low), (a.high, b.high))
        )
        for a, b in zip(first, second, strict=True)
    )


def no_effect(measure: str) -> float:
    """The value of an effect that is none."""
    return 1.0 if measure == "speedup" else 0.0


def harms(effect: Effect) -> bool:
    """Whether the whole interval speaks against the lever."""
    return effect.high < no_effect(effect.measure)


def helps(effect: Effect) -> bool:
    """Whether the whole interval speaks for it."""
    return effect.low > no_effect(effect.measure)
