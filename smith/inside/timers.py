"""How long calls take: by the clock of the host, or on a GPU by events of the device.

Whatever a timer needs of clocks and of torch is bound when it is made, before any code of a repository is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, Protocol

Call = Callable[[], object]

SHORTEST_NS = 2_000_000
"""A sample by the host's clock that is shorter is repeated within itself: whoever asked for it measures it too, with
the time that asking and answering take."""
FLUSH_BYTES = 512 << 20
"""More than the last cache of any GPU that we know of holds (256 MiB, MI300)."""
HIDDEN_NS, HIDDEN = 20_000, 0.10
"""Work that ends so much later than the stream that was timed (and by this share of its time) ran on another one."""
EMPTY = 9


class Timer(Protocol):
    """Times calls, one sample at a time."""

    shortest_ns: int
    """A sample should take so long at least; 0 where one call is a sample, however short it is."""

    def once(self, call: Call) -> int:
        """Nanoseconds until one call is done, by the host's clock: for warming up."""

    def sample(self, calls: Sequence[Call], count: int) -> tuple[float, object]:
        """Nanoseconds a call of ``count`` calls that go through ``calls`` from behind the first; and the last result.

        The last call made is the last of ``calls``.
        """

    def account(self) -> dict[str, Any]:
        """What can be said of the clocks when all is done."""


class HostTimer:
    """The clock of the host around calls that are done when they come back."""

    shortest_ns = SHORTEST_NS

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        self._clock = clock

    def once(self, call: Call) -> int:
        """As :meth:`Timer.once`."""
        began = self._clock()
        call()
        return self._clock() - began

    def sample(self, calls: Sequence[Call], count: int) -> tuple[float, object]:
        """As :meth:`Timer.sample`."""
        rounds, rest = divmod(count, len(calls))
        first = calls[:rest]
        value: object = None
        began = self._clock()
        for call in first:
            value = call()
        for _ in range(rounds):
            for call in calls:
                value = call()
        return (self._clock() - began) / count, value

    def account(self) -> dict[str, Any]:
        """Nothing: there is one clock only."""
        return {}


class DeviceTimer:
    """Events of a GPU around one call, with all its streams joined.

    A sample begins with an idle device. With ``cold`` caches a buffer larger than they are is written first, on the
    same stream: while that lasts the host launches ahead, so that the interval is the device's work and not the
    launching of it (as ``triton.testing.do_bench`` does). A first event follows it, a second one the call, and a third
    one when the whole device is done. If that is later than the second by more than joining an idle device takes, work
    ran on other streams, and the third counts. The events' time is summed up beside the host's, to be compared.
    """

    shortest_ns = 0

    def __init__(self, torch: Any, *, cold: bool, clock: Callable[[], int] = perf_counter_ns) -> None:
        cuda = torch.cuda
        self._clock, self._synchronize = clock, cuda.synchronize
        self._event, self._record, self._elapsed = cuda.Event, cuda.Event.record, cuda.Event.elapsed_time
        self._buffer: Any = None
        if cold:
            free, _ = cuda.mem_get_info()
            self._buffer = torch.empty(min(FLUSH_BYTES, free // 8), dtype=torch.uint8, device="cuda")
        self._zero = torch.Tensor.zero_
        self._device_ns = self._host_ns = 0.0
        self._samples = self._joined = 0
        self._join_ns = 0.0
        empty = sorted(self._intervals(lambda: None)[1] for _ in range(EMPTY))
        # Joining an idle device is not part of anybody's work.
        self._join_ns = empty[len(empty) // 2]
        self._device_ns = self._host_ns = 0.0

    def once(self, call: Call) -> int:
        """As :meth:`Timer.once`."""
        self._synchronize()
        began = self._clock()
        call()
        self._synchronize()
        return self._clock() - began

    def sample(self, calls: Sequence[Call], count: int) -> tuple[float, object]:
        """As :meth:`Timer.sample`; one call is timed, whatever ``count`` is."""
        on_stream, after, value = self._intervals(calls[-1])
        self._samples += 1
        hidden = after - self._join_ns
        if hidden > max(HIDDEN_NS, HIDDEN * on_stream):
            self._joined += 1
            return on_stream + hidden, value
        return on_stream, value

    def account(self) -> dict[str, Any]:
        """Sums over all samples by the device's events and by the host's clock, and on how many all streams counted."""
        return {
            "device_ns": self._device_ns,
            "host_ns": self._host_ns,
            "device_samples": self._samples,
            "joined": self._joined,
            "join_ns": self._join_ns,
        }

    def _intervals(self, call: Call) -> tuple[float, float, object]:
        """Nanoseconds of the call on its stream, from there until the device is done, and the result."""
        opened, begun, ended, joined = (self._event(enable_timing=True) for _ in range(4))
        self._synchronize()
        began = self._clock()
        self._record(opened)
        if self._buffer is not None:
            self._zero(self._buffer)
        self._record(begun)
        value = call()
        self._record(ended)
        self._synchronize()
        self._record(joined)
        self._synchronize()
        self._host_ns += self._clock() - began
        self._device_ns += 1e6 * self._elapsed(opened, joined)
        return 1e6 * self._elapsed(begun, ended), 1e6 * self._elapsed(ended, joined), value
