"""The answer of interleaved timings: a baseline against itself is the same, what is faster is faster."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.records.receipt import Answer
from smith.score.speed import LEAST_BLOCKS, Block, speed_of

CASES = ("a", "b", "c")


def blocks(count: int, *, effect: float, noise: float, drift: float, seed: int) -> list[Block]:
    """Made-up blocks: the candidate takes ``exp(-effect)`` of the time, and whole blocks drift together."""
    draw = random.Random(seed)

    def leg(shift: float, less: float = 0.0) -> dict[str, float]:
        return {case: 1000 * math.exp(shift + draw.gauss(0, noise) - less) for case in CASES}

    made = []
    for _ in range(count):
        shift = draw.gauss(0, drift)
        made.append(Block((leg(shift), leg(shift)), leg(shift, effect)))
    return made


def answers(effect: float, noise: float, trials: int = 40) -> Counter[Answer]:
    return Counter(
        speed_of(blocks(9, effect=effect, noise=noise, drift=0.2, seed=trial)).answer for trial in range(trials)
    )


def test_a_baseline_against_itself_is_the_same() -> None:
    assert answers(0.0, 0.01)[Answer.SAME] >= 38


@pytest.mark.parametrize(("effect", "answer"), [(0.2, Answer.FASTER), (-0.2, Answer.SLOWER)])
def test_a_clear_difference_is_found_whatever_the_machine_drifts(effect: float, answer: Answer) -> None:
    assert answers(effect, 0.03) == Counter({answer: 40})


def test_noise_is_no_speed_up() -> None:
    assert answers(0.0, 0.3)[Answer.FASTER] == 0
    assert answers(0.05, 0.3)[Answer.UNRESOLVED] >= 36


def test_less_than_the_smallest_difference_is_none() -> None:
    assert answers(0.01, 0.003) == Counter({Answer.SAME: 40})


def test_few_blocks_say_nothing() -> None:
    made = blocks(LEAST_BLOCKS - 1, effect=1.0, noise=0.0, drift=0.0, seed=0)
    assert speed_of(made).answer is Answer.UNRESOLVED
    with pytest.raises(ValueError, match="no block"):
        speed_of([])


@given(st.floats(-0.5, 0.5), st.floats(0, 0.1), st.integers(0, 999))
def test_sides_are_treated_alike(effect: float, noise: float, seed: int) -> None:
    """Where baseline and candidate are known to the byte, the ratio is the one that was put in."""
    speed = speed_of(blocks(5, effect=effect, noise=0.0, drift=noise, seed=seed))
    assert math.isclose(speed.whole.ratio, math.exp(effect), rel_tol=1e-9)
    assert math.isclose(speed.noise.ratio, 1.0, rel_tol=1e-9)
    for one in (speed.whole, *speed.cases.values()):
        assert one.low <= one.ratio * (1 + 1e-9) and one.ratio <= one.high * (1 + 1e-9)
