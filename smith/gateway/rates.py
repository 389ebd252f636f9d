"""How fast one provider is called: bounds and pauses that all attempts of a data repository share, over processes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from smith.paths import locked, write_atomically
from smith.records.gateway import RateRow

MINUTE_S = 60.0
POLL_S = 0.05


class Slot:
    """A place among the calls that may be under way at once; the kernel frees it with its holder."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def free(self) -> None:
        """Give it back; a second time is no change."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class Rates:
    """Bounds of one provider; its files lie in ``folder``. ``clock`` gives seconds since 1970."""

    def __init__(
        self,
        folder: Path,
        provider: str,
        row: RateRow,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", provider)[:60]
        name = f"{plain}-{hashlib.sha256(provider.encode()).hexdigest()[:8]}"
        self._folder, self._row = folder / name, row
        self._state, self._lock = self._folder / "state.json", self._folder / "lock"
        self._clock, self._sleep = clock, sleep
        self._folder.mkdir(parents=True, exist_ok=True)

    @property
    def free(self) -> bool:
        """Whether nothing is bounded, and nobody has asked for a pause."""
        return self._row == RateRow() and not self._state.exists()

    def enter(self, deadline: float) -> Slot | None:
        """Wait until one more call may leave, then count it; None where ``deadline`` (of the clock) comes first."""
        slot = self._slot(deadline)
        if slot is None:
            return None
        while True:
            wait = self._claim()
            if wait <= 0:
                return slot
            if self._clock() + wait > deadline:
                slot.free()
                return None
            self._sleep(wait)

    def pause(self, seconds: float) -> None:
        """Let nobody call for so long: the provider has asked for it."""
        with locked(self._lock):
            until, calls = self._load()
            self._save(max(until, self._clock() + seconds), calls)

    def _claim(self) -> float:
        """Count a call and return 0, or the seconds after which to ask again."""
        if self._row.requests_per_minute is None and not self._state.exists():
            return 0.0
        with locked(self._lock):
            (until, calls), now = self._load(), self._clock()
            if until > now:
                return until - now
            most = self._row.requests_per_minute
            if most is None:
                return 0.0
            recent = [at for at in calls if now - MINUTE_S < at <= now]
            if len(recent) >= most:
                return recent[-most] + MINUTE_S - now
            self._save(until, [*recent, now])
            return 0.0

    def _slot(self, deadline: float) -> Slot | None:
        if self._row.at_once is None:
            return Slot(None)
        while True:
            for number in range(self._row.at_once):
                fd = os.open(self._folder / f"slot-{number}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return Slot(fd)
                except BlockingIOError:
                    os.close(fd)
            if self._clock() > deadline:
                return None
            self._sleep(POLL_S)

    def _load(self) -> tuple[float, list[float]]:
        """Until when nobody calls, and when calls were made."""
        try:
            state = json.loads(self._state.read_bytes())
            return float(state["until"]), [float(at) for at in state["calls"]]
        except (OSError, ValueError, KeyError, TypeError):
            return 0.0, []  # a lost file allows a burst, and no more

    def _save(self, until: float, calls: list[float]) -> None:
        write_atomically(self._state, json.dumps({"until": until, "calls": calls}).encode())
