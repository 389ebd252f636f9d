"""Figures over attempts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.receipt import Timing
from smith.score.intervals import geometric_mean, median, median_ratio
from smith.score.metrics import scores, wilson


def made(verdict: GradeVerdict, speedup: float | None = None) -> Grade:
    timing = None
    if speedup is not None:
        timing = Timing(
            method="m",
            device="cpu",
            rounds=3,
            noise_low=1,
            noise_high=1,
            cases=(),
            geomean=speedup,
            low=speedup,
            high=speedup,
            worst=speedup,
        )
    return Grade(
        task="a__b-1",
        tree="0" * 40,
        device="cpu",
        verdict=verdict,
        fail_to_pass=Count(passed=0, total=1),
        pass_to_pass=Count(passed=0, total=0),
        speedup=timing,
        speedup_reason="x",
        patch_sha256="",
    )


def test_a_missing_attempt_stays_in_the_denominator() -> None:
    found = scores([[made(GradeVerdict.SOLVED)], [None], [made(GradeVerdict.TAMPERED)]])
    assert (found.solved.count, found.solved.total, found.missing) == (1, 3, 1)
    assert found.verdicts == {"solved": 1, "tampered": 1}
    assert found.pass_at_1 == pytest.approx(1 / 3)


def test_speedups_are_averaged_as_ratios() -> None:
    found = scores([[made(GradeVerdict.SOLVED, 0.5)], [made(GradeVerdict.SOLVED, 2.0)], [made(GradeVerdict.SOLVED)]])
    assert found.speedup_geomean == pytest.approx(1.0)
    assert found.speedup_tasks == 2


def test_nothing_measured_is_null_and_not_one() -> None:
    assert scores([[made(GradeVerdict.FAILED, 3.0)]]).speedup_geomean is None


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
