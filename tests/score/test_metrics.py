"""Figures over attempts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.records.grade import GradeVerdict
from smith.score.intervals import geometric_mean, median, median_ratio
from smith.score.metrics import scores
from smith.score.shares import wilson
from smith.score.trials import Task, Trial


def made(*verdicts: GradeVerdict | None, speedup: float | None = None, expert: float | None = None) -> Task:
    return Task("a__b-1", [Trial(v, speedup, usd_micros=500_000, tokens=100) for v in verdicts], expert)


SOLVED, FAILED, TAMPERED = GradeVerdict.SOLVED, GradeVerdict.FAILED, GradeVerdict.TAMPERED


def test_a_missing_attempt_stays_in_the_denominator() -> None:
    found = scores([made(SOLVED), made(None), made(TAMPERED)])
    assert (found.solved.count, found.solved.total, found.missing) == (1, 3, 1)
    assert found.verdicts == {"solved": 1, "tampered": 1}
    assert found.pass_at_1 == pytest.approx(1 / 3)


def test_speedups_are_averaged_as_ratios() -> None:
    found = scores([made(SOLVED, speedup=0.5, expert=2), made(SOLVED, speedup=2.0, expert=2), made(SOLVED)])
    assert found.speedup_geomean == pytest.approx(1.0)
    assert found.speedup_tasks == 2


def test_nothing_measured_is_null_and_not_one() -> None:
    assert scores([made(FAILED, speedup=3.0, expert=2)]).speedup_geomean is None
    assert scores([made(SOLVED)]).speed is None


def test_what_a_solved_task_costs_counts_what_was_spent_on_the_others() -> None:
    costs = scores([made(SOLVED, FAILED), made(FAILED, None)]).costs
    assert costs is not None
    assert (costs.usd, costs.usd_per_solved_task, costs.tokens_per_solved_task) == (2.0, 2.0, 400)
    nothing = scores([made(FAILED)]).costs
    assert nothing is not None and nothing.usd_per_solved_task is None


def test_a_task_of_two_languages_is_in_both_strata() -> None:
    both = Task("a", [Trial(SOLVED)], strata={"language": "hip,triton"})
    one = Task("b", [Trial(FAILED)], strata={"language": "triton"})
    found = scores([both, one]).strata["language"]
    assert {name: (s.tasks, s.solved.mean) for name, s in found.items()} == {"hip": (1, 1.0), "triton": (2, 0.5)}


def test_no_task_at_all_has_scores() -> None:
    found = scores([])
    assert (found.pass_at_1, found.solved.low, found.solved.high) == (0.0, 0.0, 1.0)


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_holds_the_share(count: int, total: int) -> None:
    count = min(count, total)
    share = wilson(count, total)
    assert 0 <= share.low <= share.share <= share.high <= 1


def test_wilson_against_known_figures() -> None:
    # 8 of 10: 0.4901625 to 0.9433178 (R, prop.test without continuity correction)
    share = wilson(8, 10)
    assert share.low == pytest.approx(0.4901625, abs=1e-6)
    assert share.high == pytest.approx(0.9433178, abs=1e-6)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=12))
def test_the_interval_holds_the_median(ratios: list[float]) -> None:
    middle, low, high = median_ratio(ratios)
    assert low <= middle * (1 + 1e-9)
    assert middle <= high * (1 + 1e-9)
    assert min(ratios) <= low * (1 + 1e-9)
    assert high <= max(ratios) * (1 + 1e-9)


def test_one_outlier_makes_no_speedup() -> None:
    middle, _, _ = median_ratio([1.0, 1.01, 0.99, 1.0, 68.0])
    assert middle == pytest.approx(1.0)


def test_a_time_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        median_ratio([1.0, 0.0])


def test_means() -> None:
    assert median([3, 1, 2]) == 2
    assert median([1, 2, 3, 4]) == 2.5
    assert geometric_mean([0.5, 0.5, 8]) == pytest.approx(2 ** (1 / 3))
