"""What showing cards did: known figures, how often nothing is told where nothing is, and how often something is."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smith.evaluate.advice import arm_of
from smith.records.grade import GradeVerdict
from smith.records.shown import Arm
from smith.score.trials import Trial
from smith.score.uplift import ENOUGH, Answer, Pair, uplift

SOLVED, FAILED = GradeVerdict.SOLVED, GradeVerdict.FAILED
SEEDS = range(100)


def trial(solved: bool, speed: float | None = None, usd: int = 1000) -> Trial:
    return Trial(SOLVED if solved else FAILED, speed if solved else None, usd, 100)


def pair(shown: Trial, cold: Trial, task: int = 0, lineage: int = 0, cards: tuple[str, ...] = ("a",)) -> Pair:
    return Pair(task=f"t{task}", lineage=f"l{lineage}", shown=shown, cold=cold, cards=cards)


def test_known_figures() -> None:
    pairs = [pair(trial(True, 2.0, 3000), trial(i < 2, 1.0), task=i, lineage=i) for i in range(8)]
    found = uplift(pairs).effect
    assert (found.solved_shown, found.solved_cold, found.solved.value) == (1.0, 0.25, 0.75)
    # Six of six pairs that differ favour the cards: 2 / 2^6, by Holm for two questions.
    assert found.solved.p_value == pytest.approx(2 * 2 / 2**6)
    assert (found.solved.lineages, found.solved.tasks, found.solved.over) == (8, 8, "lineages")
    # Agresti and Min: two pairs more, half of one for each side.
    mean, variance = 6 / 10, 7 / 10 - 0.36
    assert found.solved.low == pytest.approx(mean - 1.959964 * math.sqrt(variance / 10))
    assert found.speed is not None and found.speed.value == pytest.approx(2.0) and found.speed.pairs == 2
    assert found.usd.value == pytest.approx(0.002) and found.usd.low == pytest.approx(0.002)
    assert found.answer is Answer.NOTHING


def test_a_lineage_of_many_tasks_counts_once() -> None:
    pairs = [pair(trial(True), trial(False), task=i, lineage=0) for i in range(9)]
    pairs += [pair(trial(True), trial(True), task=20 + i, lineage=1 + i) for i in range(3)]
    found = uplift(pairs).effect.solved
    assert found.value == pytest.approx(0.25) and found.low is not None and found.low < 0


def test_a_card_that_decides_every_attempt_is_told_from_six_pairs_on() -> None:
    assert uplift([pair(trial(True), trial(False))] * (ENOUGH - 1)).effect.answer is Answer.NOTHING
    found = uplift([pair(trial(True), trial(False))] * ENOUGH)
    assert found.effect.answer is Answer.HELPS and found.effect.solved.over == "pairs"
    assert found.cards[0].effect is not None and found.cards[0].effect.answer is Answer.HELPS
    assert uplift([pair(trial(False), trial(True))] * ENOUGH).effect.answer is Answer.HARMS


def test_cards_are_told_apart_and_few_pairs_tell_nothing_of_one() -> None:
    pairs = [pair(trial(True), trial(False), i, i, ("good",)) for i in range(10)]
    pairs += [pair(trial(False), trial(True), 20 + i, 20 + i, ("bad",)) for i in range(10)]
    pairs += [pair(trial(True), trial(False), 40, 40, ("rare",))]
    found = {one.card: one.effect for one in uplift(pairs).cards}
    assert found["rare"] is None
    assert found["good"] is not None and found["good"].answer is Answer.HELPS
    assert found["bad"] is not None and found["bad"].answer is Answer.HARMS


def test_more_solved_and_slower_is_mixed() -> None:
    pairs = [pair(trial(True, 1.0), trial(False), i, i) for i in range(12)]
    pairs += [pair(trial(True, 1.0), trial(True, 2.0), 20 + i, 20 + i) for i in range(12)]
    assert uplift(pairs).effect.answer is Answer.MIXED


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1, max_size=10))
def test_the_other_way_round_is_the_opposite(drawn: list[tuple[bool, bool, int]]) -> None:
    pairs = [pair(trial(a, 2.0), trial(b, 3.0), task, task // 2) for a, b, task in drawn]
    there = uplift(pairs).effect
    back = uplift([Pair(p.task, p.lineage, p.cold, p.shown, p.cards) for p in pairs]).effect
    assert there.solved.value == pytest.approx(-back.solved.value)
    assert there.solved.p_value == pytest.approx(back.solved.p_value)
    assert there.solved.low is not None and back.solved.high is not None
    assert there.solved.low == pytest.approx(-back.solved.high)
    assert there.solved.low <= there.solved.value <= (there.solved.high or 0)


def drawn(seed: int, gain: Callable[[Arm], float]) -> list[Pair]:
    """The pairs of one run: 16 tasks of 10 lineages, unlike in difficulty and speed, 4 attempts each."""
    rng = np.random.default_rng(seed)
    hard = rng.beta(0.8, 0.8, 10)
    pairs = []
    for task in range(16):
        lineage = task % 10
        level = rng.lognormal(0.5, 0.4)
        for start in (1, 3):
            arms: dict[Arm, Trial] = {}
            for number in (start, start + 1):
                arm = arm_of("ab", seed, f"t{task}", number)
                solved = bool(rng.random() < min(1.0, hard[lineage] + gain(arm)))
                arms[arm] = trial(solved, level * rng.lognormal(0, 0.2), int(rng.lognormal(8, 1)))
            pairs.append(pair(arms[Arm.SHOWN], arms[Arm.COLD], task, lineage, (f"c{task % 3}",)))
    return pairs


def test_where_success_does_not_depend_on_cards_none_is_found_in_95_of_100_seeds() -> None:
    found = [uplift(drawn(seed, lambda arm: 0.0)) for seed in SEEDS]
    assert sum(one.effect.answer is Answer.HELPS for one in found) <= 5
    assert sum(one.effect.answer is not Answer.NOTHING for one in found) <= 10  # two-sided: 5 are expected at most
    harmful = [card for one in found for card in one.cards if card.effect and card.effect.answer is Answer.HARMS]
    assert len(harmful) <= 5


def test_where_it_does_it_is_found() -> None:
    found = [uplift(drawn(seed, lambda arm: 0.6 * (arm is Arm.SHOWN))) for seed in range(40)]
    assert sum(one.effect.answer is Answer.HELPS for one in found) >= 32  # of 100 seeds 91 were
    assert not any(one.effect.answer is Answer.HARMS for one in found)
