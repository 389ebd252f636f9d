"""What voids a block on a GPU. The GPU is told what to say; the thread that reads it is real."""

from __future__ import annotations

import time
from pathlib import Path

from smith.gpus.base import GpuState, Occupant, Readings
from smith.grade.gpu_watch import GpuWatch


class Card:
    """A card that says what it was told to."""

    def __init__(self) -> None:
        self.readings, self.occupants = Readings(busy_percent=0, clock_mhz=132, temperature_c=40.0), ()
        self.going: list[Occupant] = []

    def __call__(self) -> GpuState:
        return GpuState(self.readings, (self.going.pop(),) if self.going else self.occupants)

    def work(self, mhz: int) -> None:
        self.readings = Readings(busy_percent=97, clock_mhz=mhz, temperature_c=self.readings.temperature_c)


def block(card: Card, watch: GpuWatch, *clocks: int) -> str | None:
    before = watch.moment()
    for mhz in clocks:
        with watch.leg():
            card.work(mhz)
            time.sleep(0.05)
    return watch.disturbed(before, watch.moment())


def watching(card: Card) -> GpuWatch:
    # Nothing is known of the host: what runs on it beside these tests is not what they are about.
    return GpuWatch(card, foreign=1.0, every_s=0.005, settle_s=0.05, proc=Path("/nowhere"))


def test_a_steady_clock_is_no_disturbance_and_a_moving_one_is() -> None:
    card = Card()
    watch = watching(card)
    assert block(card, watch, 2100, 2050, 2100) is None
    found = block(card, watch, 2100, 1700, 2100)
    assert found is not None and "1700 MHz in one leg and 2100 in another" in found
    # The block before is forgotten.
    assert block(card, watch, 2100, 2100, 2100) is None
    assert "the GPU's clock differed" in watch.method


def test_others_on_the_card_void_a_block_and_those_who_just_leave_do_not() -> None:
    card = Card()
    watch = watching(card)
    card.going = [Occupant(12, "ours")] * 3
    assert block(card, watch, 2100) is None
    card.occupants = (Occupant(4713, "train"),)
    assert block(card, watch, 2100) == "the GPU was used by process 4713 (train)"


def test_a_card_that_got_hot_voids_a_block() -> None:
    card = Card()
    watch = watching(card)
    before = watch.moment()
    card.readings = Readings(temperature_c=71.0)
    assert watch.disturbed(before, watch.moment()) == "the GPU went from 40 to 71 degrees"


def test_what_a_driver_does_not_tell_is_said_to_be_unknown() -> None:
    card = Card()
    card.readings = Readings()
    watch = watching(card)
    before = watch.moment()
    with watch.leg():
        time.sleep(0.02)
    assert watch.disturbed(before, watch.moment()) is None
    assert "its clock could not be read" in watch.method
