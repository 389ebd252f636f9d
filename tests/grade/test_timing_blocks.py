"""Blocks of timings: how many are taken, which are void, and what a leg that computes something else comes to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from smith.grade.disturbance import Moment, Watch
from smith.grade.timed_processes import CannotTime
from smith.grade.timing import MOST_BLOCKS, MOST_VOID, Way, measure_blocks
from smith.inside.time_workload import MIN_SAMPLES, time_case
from smith.inside.timers import HostTimer
from smith.records.receipt import Answer


class Disturbed(Watch):
    """A watch that is told which blocks were disturbed."""

    def __init__(self, blocks: Iterator[bool]) -> None:
        super().__init__()
        self._blocks = blocks

    def disturbed(self, before: Moment, after: Moment) -> str | None:
        return "a neighbour" if next(self._blocks) else None


def never() -> Iterator[bool]:
    while True:
        yield False


def way(candidate_ns: float, disturbed: Iterator[bool], *, noise: float = 0.01, wrong: bool = False) -> Way:
    draw = random.Random(0)

    def sample(candidate: bool, seed: int) -> dict[str, Any]:
        ns = (candidate_ns if candidate else 1000.0) * (1 + draw.gauss(0, noise))
        value = float(seed) + (1.0 if wrong and candidate else 0.0)
        return {"case": {"ns": ns, "checks": [{"shape": [1], "values": [value % 97 + 1]}]}}

    return Way(
        "cpu", lambda seed: [sample(candidate, seed) for candidate in (False, True, False)], Disturbed(disturbed)
    )


def test_a_clear_answer_ends_the_measurement() -> None:
    timing = measure_blocks(way(500.0, never()))
    assert (timing.answer, timing.rounds, timing.void) == (Answer.FASTER, 5, 0)
    (case,) = timing.cases
    assert (len(case.baseline_ns), len(case.candidate_ns)) == (10, 5)
    assert 1.9 < timing.low <= timing.geomean <= timing.high < 2.1
    assert "void" in timing.method


def test_noise_takes_all_blocks_and_resolves_nothing() -> None:
    timing = measure_blocks(way(990.0, never(), noise=0.3))
    assert (timing.answer, timing.rounds) == (Answer.UNRESOLVED, MOST_BLOCKS)


def test_disturbed_blocks_do_not_count() -> None:
    blocks = iter([True, False] * 40)
    timing = measure_blocks(way(500.0, blocks))
    assert (timing.rounds, timing.void) == (5, 5)


def test_where_every_block_is_disturbed_nothing_can_be_timed() -> None:
    with pytest.raises(CannotTime, match="a neighbour") as caught:
        measure_blocks(way(500.0, iter([True] * MOST_VOID)))
    assert not caught.value.candidate


def test_a_timed_call_must_give_the_result() -> None:
    with pytest.raises(CannotTime, match="a wrong result") as caught:
        measure_blocks(way(500.0, never(), wrong=True))
    assert caught.value.candidate


def drawing(values: list[float]) -> Callable[[], Callable[[], object]]:
    """A case that gives the number that it drew, and notes what was drawn."""

    def make() -> Callable[[], object]:
        values.append(random.random())
        return lambda drawn=values[-1]: drawn

    return make


def test_timed_results_are_those_of_their_own_inputs_in_every_process() -> None:
    one, other = time_case(drawing([]), 0.0, seed=7), time_case(drawing([]), 0.02, seed=7)
    assert one["checks"] == other["checks"] and len({str(check) for check in one["checks"]}) == 3
    assert one["samples"] == MIN_SAMPLES and one["ns"] > 0
    assert time_case(drawing([]), 0.0, seed=8)["checks"] != one["checks"]


def test_a_remembered_result_shows() -> None:
    """What is computed once and given back ever after is not what the baseline computed in its timed calls."""
    kept: list[float] = []

    def make() -> Callable[[], object]:
        drawn = random.random()
        return lambda: kept.append(drawn) or kept[0]  # type: ignore[func-returns-value]

    assert time_case(make, 0.0, seed=7)["checks"] != time_case(drawing([]), 0.0, seed=7)["checks"]


def test_short_calls_go_through_many_inputs() -> None:
    drawn: list[float] = []
    moments = iter(range(0, 1_000_000_000, 100))  # a clock by which every call takes 100 ns
    figures = time_case(drawing(drawn), 0.0, seed=7, timer=HostTimer(lambda: next(moments)))
    assert figures["inner"] == 20_000
    assert len(set(drawn)) > 50 * MIN_SAMPLES
