"""Nothing is found where nothing is wrong, and kernels compute what they compute without the sanitizer."""

from __future__ import annotations

import clean
import planted
import pytest
import torch

from smith.device.interpreter import sanitizer
from smith.device.interpreter.sanitizer.report import INFORMATION, LIMIT

sanitizer.install()

INFORMED = {
    "same_value": {"same_value_write"},
    "other_row_of_the_storage": {"outside_view"},
}


@pytest.mark.parametrize("name", sorted(clean.CLEAN))
def test_clean(name: str) -> None:
    sanitizer.take()
    assert clean.CLEAN[name]()
    found = sanitizer.take()
    assert {each["kind"] for each in found} == INFORMED.get(name, set()), found


def test_findings_are_bounded_and_counted() -> None:
    sanitizer.take()
    for _ in range(5):
        planted.elementwise(planted.copy_unmasked, torch.float32)
    (one,) = sanitizer.take()
    assert (one["times"], one["lanes"], one["offset"], one["program"]) == (5, 14, 50, (1, 0, 0))
    assert sanitizer.take() == []
    for kind, run, *_ in planted.PLANTED.values():
        if kind not in INFORMATION:
            run()
    assert 10 < len(sanitizer.take()) <= LIMIT


def test_what_is_out_of_bounds_is_not_carried_out() -> None:
    sanitizer.take()
    part = torch.zeros(50)
    planted.copy_off_by_one[planted.grid(50)](torch.ones(50), part, 50, BLOCK=planted.BLOCK)
    assert part.sum() == 50
    (one,) = sanitizer.take()
    assert (one["kind"], one["argument"], one["offset"]) == ("out_of_bounds_write", "y_ptr", 50)


def test_a_race_names_both_programs() -> None:
    sanitizer.take()
    planted.counted_and_racing[(2, 1, 2)](torch.zeros(1), torch.zeros(1, dtype=torch.int32))
    (race,) = (each for each in sanitizer.take() if each["kind"] == "race")
    assert (race["program"], race["other"]) == ((1, 0, 0), (0, 0, 1))
