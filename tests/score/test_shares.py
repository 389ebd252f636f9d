"""Shares and their intervals: against scipy, and whether 95 % of them hold the truth."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from smith.records.grade import GradeVerdict
from smith.score.passk import pass_at, pass_at_k
from smith.score.shares import mean_over_tasks, wilson
from smith.score.trials import Task, Trial


@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_is_scipys(count: int, total: int) -> None:
    count = min(count, total)
    known = binomtest(count, total).proportion_ci(method="wilson")
    found = wilson(count, total)
    assert (found.low, found.high) == pytest.approx((known.low, known.high), abs=1e-9)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=80))
def test_with_one_attempt_a_task_it_is_wilsons(values: list[float]) -> None:
    found, plain = mean_over_tasks(values), wilson(round(sum(values)), len(values))
    assert (found.mean, found.low, found.high) == pytest.approx((plain.share, plain.low, plain.high), abs=1e-12)


@given(st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=1, max_size=60))
def test_the_interval_holds_the_mean_and_is_no_narrower_than_all_attempts_give(values: list[float]) -> None:
    found = mean_over_tasks(values, 4)
    assert 0 <= found.low <= found.mean + 1e-12 and found.mean <= found.high + 1e-12 <= 1 + 2e-12
    alike = wilson(round(4 * sum(values)), 4 * len(values))
    assert found.high - found.low >= alike.high - alike.low - 1e-12


def test_attempts_that_always_agree_tell_no_more_than_one_each() -> None:
    once = mean_over_tasks([1.0] * 12 + [0.0] * 18)
    often = mean_over_tasks([1.0] * 12 + [0.0] * 18, attempts=5)
    assert (often.low, often.high) == (once.low, once.high)


@pytest.mark.parametrize("tasks", [30, 100])
@pytest.mark.parametrize("attempts", [1, 4])
@pytest.mark.parametrize("alike", [0.5, 5.0])
def test_95_percent_of_the_intervals_hold_the_truth(tasks: int, attempts: int, alike: float) -> None:
    """Tasks of different difficulty (beta), attempts drawn at each; the truth is the mean difficulty of all tasks."""
    rng = np.random.default_rng(7)
    truth, held, rounds = 0.4, 0, 1500
    for _ in range(rounds):
        chance = rng.beta(alike * truth, alike * (1 - truth), tasks)
        found = mean_over_tasks(list(rng.binomial(attempts, chance) / attempts), attempts)
        held += found.low <= truth <= found.high
    assert 0.93 <= held / rounds <= 0.97


@given(st.integers(1, 8), st.data())
def test_pass_at_k_is_the_share_of_draws_that_hold_a_solution(attempts: int, data: st.DataObject) -> None:
    solved = data.draw(st.integers(0, attempts))
    k = data.draw(st.integers(1, attempts))
    outcomes = [1] * solved + [0] * (attempts - solved)
    draws = list(combinations(outcomes, k))
    assert pass_at_k(attempts, solved, k) == pytest.approx(sum(map(max, draws)) / len(draws))


def test_pass_at_k_wants_k_attempts() -> None:
    with pytest.raises(ValueError, match="pass@3"):
        pass_at_k(2, 1, 3)


def test_pass_at_every_power_of_two_and_the_number_of_attempts() -> None:
    trials = [Trial(GradeVerdict.SOLVED), *[Trial()] * 5]
    found = pass_at([Task("a", trials), Task("b", [Trial()] * 6)])
    assert list(found) == [1, 2, 4, 6]
    assert found[1].mean == pytest.approx(1 / 12) and found[6].mean == 0.5
    assert all(found[a].mean <= found[b].mean for a, b in ((1, 2), (2, 4), (4, 6)))
    assert not math.isnan(found[6].low)
