"""What voids a block that is timed on a GPU: somebody else on its card, a clock that moved, a card that got hot.

A clock means something only while the GPU works, so it is read all through each leg; the other two are looked at
between legs, when no process of ours is there. What a driver does not tell is not watched, and the method says so.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from smith.gpus.base import BUSY_PERCENT, GpuState
from smith.grade.disturbance import CLOCK_DRIFT, Moment, Watch

EVERY_S = 0.05
WARMER_C = 15.0
"""How much warmer or colder a card may be after a block than before."""
SETTLE_S = 3.0
"""How long a process of ours may be seen on a card after it has ended."""


@dataclass(frozen=True)
class GpuMoment(Moment):
    """A moment of the host, with the card's temperature and with who is on it."""

    temperature: float | None = None
    foreign: tuple[str, ...] = ()


class GpuWatch(Watch):
    """Watches a leased GPU beside the host's processors. ``look`` says what it does now."""

    def __init__(
        self,
        look: Callable[[], GpuState],
        *,
        foreign: float = 0.10,
        every_s: float = EVERY_S,
        settle_s: float = SETTLE_S,
        proc: Path = Path("/proc"),
    ) -> None:
        super().__init__(foreign=foreign, proc=proc)
        self._look, self._every_s, self._settle_s = look, every_s, settle_s
        self._clocks: list[float] = []
        self.knows_clock = False
        """Whether any leg's clock could be read."""

    def moment(self) -> GpuMoment:
        """The counters now; a process of ours that has just ended is given time to go."""
        host = super().moment()
        end = time.monotonic() + self._settle_s
        state = self._look()
        while state.occupants and time.monotonic() < end:
            time.sleep(self._every_s)
            state = self._look()
        foreign = tuple(str(one) for one in state.occupants)
        return GpuMoment(host.wall, host.busy, host.own, host.clock, state.readings.temperature_c, foreign)

    @contextlib.contextmanager
    def leg(self) -> Iterator[None]:
        """Read the clock while a leg runs."""
        seen: list[int] = []
        over = threading.Event()

        def read() -> None:
            while not over.wait(self._every_s):
                readings = self._look().readings
                if readings.clock_mhz and (readings.busy_percent is None or readings.busy_percent >= BUSY_PERCENT):
                    seen.append(readings.clock_mhz)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            if seen:
                self._clocks.append(statistics.median(seen))
                self.knows_clock = True

    def disturbed(self, before: Moment, after: Moment) -> str | None:
        """As :meth:`Watch.disturbed`, or what happened on the card."""
        clocks, self._clocks = self._clocks, []
        if found := super().disturbed(before, after):
            return found
        assert isinstance(before, GpuMoment)
        assert isinstance(after, GpuMoment)
        for one in (before, after):
            if one.foreign:
                return f"the GPU was used by {', '.join(one.foreign[:3])}"
        if clocks and max(clocks) > (1 + CLOCK_DRIFT) * min(clocks):
            return f"the GPU's clock was {min(clocks):.0f} MHz in one leg and {max(clocks):.0f} in another"
        was, now = before.temperature, after.temperature
        if was is not None and now is not None and abs(now - was) > WARMER_C:
            return f"the GPU went from {was:.0f} to {now:.0f} degrees"
        return None

    @property
    def method(self) -> str:
        """What was watched, in words."""
        clock = "the GPU's clock differed by 10 % between legs" if self.knows_clock else ""
        unknown = "" if self.knows_clock else "; its clock could not be read while it worked"
        causes = ["others were on the GPU before or after", clock, f"it warmed or cooled by {WARMER_C:.0f} degrees"]
        return f"{super().method}; so are those in which {', or '.join(c for c in causes if c)}{unknown}"
