"""The timer of a GPU on a simulated one: queues, streams, and a host that launches ahead of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from smith.grade.timed_processes import disagreement
from smith.inside.timers import DeviceTimer

LAUNCH_NS = 5_000
FLUSH_NS = 170_000


class Simulated:
    """A device with streams. What it offers is named as in torch; time is whole nanoseconds."""

    def __init__(self, slow_events: float = 1.0) -> None:
        self.now, self.free, self.stream, self.slow = 0, {"main": 0}, "main", slow_events
        device = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing
                self.at = 0

            def record(self) -> None:
                device.now += 500
                self.at = max(device.now, device.free[device.stream])

            def elapsed_time(self, other: Any) -> float:
                return float(other.at - self.at) * device.slow / 1e6

        class Tensor:
            def zero_(self) -> None:
                device.launch(FLUSH_NS)

        self.cuda: Any = type("cuda", (), {"Event": Event, "synchronize": self.synchronize, "mem_get_info": self.info})
        self.Tensor, self.uint8 = Tensor, "uint8"

    def info(self) -> tuple[int, int]:
        return 64 << 30, 192 << 30

    def empty(self, size: int, dtype: str, device: str) -> Any:
        assert (size, dtype, device) == (512 << 20, "uint8", "cuda")
        return self.Tensor()

    def launch(self, ns: int, stream: str | None = None) -> None:
        """Queue work and come back at once."""
        self.now += LAUNCH_NS
        stream = stream or self.stream
        self.free[stream] = max(self.now, self.free.get(stream, 0)) + ns

    def synchronize(self) -> None:
        self.now = max(self.now, *self.free.values()) + 2_000

    def clock(self) -> int:
        return self.now

    def timer(self, *, cold: bool) -> DeviceTimer:
        return DeviceTimer(self, cold=cold, clock=self.clock)


def kernels(device: Simulated, count: int, ns: int, stream: str | None = None) -> Callable[[], object]:
    def call() -> object:
        for _ in range(count):
            device.launch(ns, stream)
        return count

    return call


@pytest.mark.parametrize("cold", [True, False])
def test_what_is_timed_is_the_work_and_not_the_queueing_of_it(cold: bool) -> None:
    device = Simulated()
    timer = device.timer(cold=cold)
    ns, value = timer.sample([kernels(device, 1, 2_000_000)], 1)
    assert value == 1 and ns == pytest.approx(2_000_000, rel=0.01)
    # The host alone would have said this.
    began = device.now
    kernels(device, 1, 2_000_000)()
    assert device.now - began == LAUNCH_NS


def test_behind_a_flush_the_host_launches_ahead() -> None:
    """Ten kernels of 1 us take 50 us to launch: cold, only their work is in the interval; warm, they are waited for."""
    device = Simulated()
    assert device.timer(cold=True).sample([kernels(device, 10, 1_000)], 1)[0] == pytest.approx(10_000, abs=600)
    assert device.timer(cold=False).sample([kernels(device, 10, 1_000)], 1)[0] > 40_000


def test_work_on_another_stream_counts() -> None:
    device = Simulated()
    timer = device.timer(cold=True)
    assert timer.sample([kernels(device, 1, 3_000_000, "side")], 1)[0] == pytest.approx(3_000_000, rel=0.1)
    assert timer.account()["joined"] == 1


def test_events_are_held_against_the_clock_of_the_host() -> None:
    for slow, wrong in ((1.0, False), (0.5, True), (1.5, True)):
        device = Simulated(slow)
        timer = device.timer(cold=True)
        for _ in range(9):
            timer.sample([kernels(device, 1, 40_000_000)], 1)
        account = timer.account()
        assert account["device_samples"] == 9
        assert bool(disagreement(account)) is wrong, account


def test_a_processor_has_one_clock_only() -> None:
    assert disagreement({}) == ""
