"""The time limit of one test id.

A timer signal raises :class:`IdTimeout` in the main thread and goes on raising it every few seconds, for code that
catches everything. Code that never comes back to the interpreter is ended by a thread, together with the process: the
result of that id is sent first, and the host sees the rest as never started.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from smith.inside.outcomes import IdTimeout

AGAIN_S = 5.0
STUCK_STATUS = 75


class Clock:
    """Arm it before an id and disarm it after. ``stuck`` is called just before the process is ended."""

    def __init__(self, limit_s: float, stuck: Callable[[], None]) -> None:
        self._limit_s = limit_s
        self._stuck = stuck
        self.rang = False
        """Whether the time of the current id was used up, even if the test swallowed the exception."""
        self._armed = False
        self._thread: threading.Timer | None = None
        self._setitimer, self._exit, self._signal = signal.setitimer, os._exit, signal.signal
        self._pid = os.getpid()

    def arm(self) -> None:
        """Start the time of one id. The handler is set anew each time: tests do replace it."""
        if self._limit_s <= 0:
            return
        self._signal(signal.SIGALRM, self._ring)
        self.rang = False
        self._armed = True
        self._thread = threading.Timer(self._limit_s + 3 * AGAIN_S, self._give_up)
        self._thread.daemon = True
        self._thread.start()
        self._setitimer(signal.ITIMER_REAL, self._limit_s, AGAIN_S)

    def disarm(self) -> None:
        """Stop it; a signal already under way is then ignored."""
        self._armed = False
        self._setitimer(signal.ITIMER_REAL, 0)
        if self._thread is not None:
            self._thread.cancel()
            self._thread = None

    def _ring(self, _number: int, _frame: Any) -> None:
        if self._armed and os.getpid() == self._pid:
            self.rang = True
            raise IdTimeout(f"over the limit of {self._limit_s:g} s for one test id")

    def _give_up(self) -> None:
        if self._armed:
            self._stuck()
            self._exit(STUCK_STATUS)
