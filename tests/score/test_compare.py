"""Comparing two runs: reference data, what is told of equal agents, and how often."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test, ttest_rel

from smith.records.grade import GradeVerdict
from smith.score.compare import Told, compare, corrected
from smith.score.trials import Task, Trial


def run(solved: list[int], attempts: int = 1, speed: float | None = None) -> list[Task]:
    return [
        Task(
            str(i),
            [Trial(GradeVerdict.SOLVED, speed, 1000) for _ in range(s)] + [Trial(GradeVerdict.FAILED)] * (attempts - s),
        )
        for i, s in enumerate(solved)
    ]


def pairs(both: int, first: int, second: int, neither: int) -> tuple[list[Task], list[Task]]:
    return (
        run([1] * both + [1] * first + [0] * second + [0] * neither),
        run([1] * both + [0] * first + [1] * second + [0] * neither),
    )


def test_known_figures_of_matched_pairs() -> None:
    # Approval of a prime minister, asked twice of 1600 (Agresti, Categorical Data Analysis): 794, 150, 86, 570.
    found = compare(*pairs(794, 150, 86, 570))
    assert found.difference == pytest.approx(-0.04)
    assert (found.low, found.high) == pytest.approx((-0.0587, -0.0212), abs=3e-4)
    assert found.p_value == pytest.approx(3.7e-5, rel=0.05)  # exact McNemar
    assert found.told is Told.FIRST and (found.only_first, found.only_second, found.same) == (150, 86, 1364)


def test_few_tasks_tell_nothing_and_say_how_many_would() -> None:
    found = compare(*pairs(3, 1, 3, 3))
    assert found.told is Told.NOTHING and found.p_value == pytest.approx(0.625)
    assert found.tasks_needed is not None and 50 < found.tasks_needed < 200
    assert compare(*pairs(5, 0, 0, 5)).tasks_needed is None


def test_several_attempts_are_one_task_each() -> None:
    first, second = run([0, 1, 2, 0, 1] * 6, 4), run([2, 3, 4, 1, 2] * 6, 4)
    found = compare(first, second)
    assert found.attempts == (4, 4) and found.test.startswith("sign flips")
    assert found.told is Told.SECOND and found.low > 0 and found.p_value < 0.001


def test_one_task_that_differs_in_several_attempts_tells_nothing() -> None:
    found = compare(run([1, 2, 2], 2), run([1, 2, 1], 2))
    assert found.p_value == 1.0 and found.told is Told.NOTHING


def test_sign_flips_and_students_test_agree_where_both_hold() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.binomial(8, 0.4, 60), rng.binomial(8, 0.47, 60)
    found = compare(run(list(a), 8), run(list(b), 8))
    assert found.p_value == pytest.approx(float(ttest_rel(a, b).pvalue), abs=0.02)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12))
def test_sign_flips_are_those_of_scipy_where_it_counts_all(solved: list[tuple[int, int]]) -> None:
    first, second = run([a for a, _ in solved], 3), run([b for _, b in solved], 4)
    # In twelfths, as whole numbers: scipy compares sums of floats.
    told = np.array([3 * b - 4 * a for a, b in solved if 3 * b != 4 * a])
    found = compare(first, second)
    if told.size < 2:  # which scipy does not take
        assert found.p_value == 1.0
        return
    right = permutation_test(
        (told,), lambda x, axis: np.sum(x, axis=axis), permutation_type="samples", vectorized=True, n_resamples=5000
    )
    assert found.p_value == pytest.approx(float(right.pvalue)) and found.test == "sign flips, exact"


@pytest.mark.parametrize(("attempts", "rounds"), [(1, 1000), (4, 100)])
def test_equal_agents_are_told_apart_one_time_in_twenty_at_most(attempts: int, rounds: int) -> None:
    rng = np.random.default_rng(11)
    told, held = 0, 0
    for _ in range(rounds):
        chance = rng.beta(1, 1.5, 40)
        found = compare(
            run(list(rng.binomial(attempts, chance)), attempts), run(list(rng.binomial(attempts, chance)), attempts)
        )
        told += found.told is not Told.NOTHING
        held += found.low <= 0 <= found.high
    assert told / rounds <= 0.065
    assert held / rounds >= 0.93


def test_the_interval_of_a_real_difference_holds_it() -> None:
    rng = np.random.default_rng(13)
    held, rounds = 0, 1000
    for _ in range(rounds):
        chance = rng.beta(2, 2, 100)
        found = compare(run(list(rng.binomial(1, chance * 0.8))), run(list(rng.binomial(1, chance))))
        held += found.low <= 0.1 <= found.high
    assert 0.93 <= held / rounds <= 0.975


def test_among_many_comparisons_one_lucky_one_is_not_told() -> None:
    lucky = compare(*pairs(10, 1, 8, 10))
    assert lucky.told is Told.SECOND
    found = corrected([lucky, *[compare(*pairs(10, 2, 2, 10))] * 4])
    assert found[0].told is Told.NOTHING and found[0].p_value == pytest.approx(5 * lucky.p_value)
    assert [c.p_value for c in corrected([lucky])] == [lucky.p_value]


def test_speed_is_compared_where_both_solved() -> None:
    found = compare(run([1, 1, 1, 0], speed=2.0), run([1, 1, 0, 1], speed=3.0))
    assert found.speed is not None and found.speed.tasks == 2 and found.speed.ratio == pytest.approx(1.5)
    assert compare(run([1, 0]), run([0, 1])).speed is None


def test_only_the_same_tasks_can_be_compared() -> None:
    with pytest.raises(ValueError, match="same tasks"):
        compare(run([1, 1]), run([1]))
