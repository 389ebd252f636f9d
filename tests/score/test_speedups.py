"""Figures of speed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smith.records.grade import GradeVerdict
from smith.score.speedups import geomean_over, speed_scores
from smith.score.trials import Task, Trial

SOLVED, FAILED = GradeVerdict.SOLVED, GradeVerdict.FAILED


def task(expert: float | None, *trials: tuple[GradeVerdict | None, float | None]) -> Task:
    return Task("t", [Trial(verdict, speedup) for verdict, speedup in trials], expert)


def test_by_hand() -> None:
    found = speed_scores(
        [
            task(4.0, (SOLVED, 4.0), (SOLVED, 1.0)),  # one as fast as the reference, one no faster than the baseline
            task(2.0, (FAILED, 9.0), (None, None)),  # what is wrong earns nothing, however fast it is
            task(2.0, (SOLVED, 1.9), (FAILED, None)),
            task(None, (SOLVED, None), (SOLVED, None)),  # not about speed
        ]
    )
    assert found is not None and found.timed == 3
    fast = {p: mean.mean for p, mean in found.fast_p.items()}
    assert fast == {"0.5": 0.5, "0.8": 0.5, "1": pytest.approx(1 / 3), "1.5": pytest.approx(1 / 3),
                    "2": pytest.approx(1 / 6), "3": pytest.approx(1 / 6), "5": 0.0}  # fmt: skip
    assert found.reached.mean == pytest.approx(1 / 3)
    assert found.geomean is not None and found.geomean.ratio == pytest.approx(math.sqrt(2.0 * 1.9))
    assert found.geomean_all.ratio == pytest.approx((2.0 * 1.0 * math.sqrt(1.9)) ** (1 / 3))
    assert found.worst == 1.0
    assert found.expert_harmonic == pytest.approx(2 / (1 / 0.5 + 1 / 0.95))


def test_where_nothing_is_solved_nothing_is_invented() -> None:
    found = speed_scores([task(2.0, (FAILED, None))])
    assert found is not None
    assert (found.geomean, found.worst, found.expert_harmonic, found.geomean_all.ratio) == (None, None, None, 1.0)


def test_one_case_near_zero_time_does_not_carry_a_panel() -> None:
    tasks = [task(2.0, (SOLVED, 1.0)) for _ in range(9)] + [task(2.0, (SOLVED, 1e6))]
    found = speed_scores(tasks)
    assert found is not None and found.geomean is not None and found.geomean.ratio < 4
    assert found.fast_p["2"].mean == 0.1


def test_the_interval_of_a_geometric_mean_holds_the_truth_19_times_in_20() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(1500):
        found = geomean_over(list(np.exp(rng.normal(0.5, 0.4, 12))))
        assert found.low is not None and found.high is not None
        held += found.low <= math.exp(0.5) <= found.high
    assert 0.93 <= held / 1500 <= 0.97
