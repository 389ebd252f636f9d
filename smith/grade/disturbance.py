"""Whether something else used the processors while a block was timed, or their clock changed: such a block is void.

Linux only: elsewhere nothing is known, and that is said in the method. Sources: ``/proc/stat`` (processor time of the
whole machine), the times of this process, what the timed processes say of theirs (a sandbox may end without having
waited for them, and then nobody is told), and cpufreq's ``scaling_cur_freq``.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

CLOCK_DRIFT = 0.10
"""Of the mean clock, between the beginning and the end of a block."""

_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns of ``/proc/stat`` that are work: user, nice, system, irq, softirq, steal (a guest's time is user time)."""


@dataclass(frozen=True)
class Moment:
    """Counters at one moment: seconds of wall time, of all processors' work, of our own; the mean clock in kHz."""

    wall: float
    busy: float
    own: float
    clock: float | None


class Watch:
    """Takes moments. Others may use the share ``foreign`` of all processors. What it reads can be replaced."""

    def __init__(
        self,
        *,
        foreign: float = 0.10,
        proc: Path = Path("/proc"),
        cpus: Path = Path("/sys/devices/system/cpu"),
        now: Callable[[], float] = time.monotonic,
        own: Callable[[], float] = lambda: sum(os.times()[:2]),
        processors: int | None = None,
    ) -> None:
        self._stat, self._cpus, self._now, self._own = proc / "stat", cpus, now, own
        self.foreign, self._processors = foreign, processors or os.cpu_count() or 1
        self._timed = 0.0
        self.knows = self._busy() is not None

    @property
    def method(self) -> str:
        """What is watched, in words."""
        if not self.knows:
            return "what else the machine did is not known"
        return (
            f"blocks in which others used more than {self.foreign:.0%} of the processors or the clock drifted by "
            f"{CLOCK_DRIFT:.0%} are void"
        )

    @contextlib.contextmanager
    def leg(self) -> Iterator[None]:
        """Around what is timed without others beside it; here nothing more is to be seen then."""
        yield

    def moment(self) -> Moment:
        """The counters now."""
        return Moment(self._now(), self._busy() or 0.0, self._own() + self._timed, self._clock())

    def used(self, seconds: float) -> None:
        """Take in the processor time of a timed process."""
        self._timed += seconds

    def disturbed(self, before: Moment, after: Moment) -> str | None:
        """What happened between two moments that voids a timing; None where nothing is known to have."""
        wall = after.wall - before.wall
        foreign = (after.busy - before.busy) - (after.own - before.own)
        # Counted in ticks, one of which each processor may just have begun: over a moment that is more than all of it.
        counted = foreign - self._processors / os.sysconf("SC_CLK_TCK")
        if self.knows and wall > 0 and counted / wall > self.foreign * self._processors:
            return f"other processes used {foreign / wall:.2f} of {self._processors} processors"
        if before.clock and after.clock and abs(after.clock / before.clock - 1) > CLOCK_DRIFT:
            return f"the processors' clock went from {before.clock / 1e3:.0f} to {after.clock / 1e3:.0f} MHz"
        return None

    def _busy(self) -> float | None:
        try:
            first = self._stat.read_text("ascii").partition("\n")[0].split()
            return sum(int(first[1 + column]) for column in _BUSY) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None

    def _clock(self) -> float | None:
        clocks = []
        for file in self._cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
            try:
                clocks.append(int(file.read_text("ascii")))
            except (OSError, ValueError):
                continue
        return sum(clocks) / len(clocks) if clocks else None
