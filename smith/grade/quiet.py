"""Timings run alone: while one is taken on this machine, no other trial of this data repository runs."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def shared(lock: Path) -> Iterator[None]:
    """Run tests beside others; waits while somebody measures."""
    with _held(lock, fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Measure: waits until running tests have ended, and keeps others from starting."""
    with _held(lock, fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def _held(lock: Path, how: int) -> Iterator[None]:
    # A turnstile before the lock itself: a measurement that waits keeps new tests from overtaking it for ever.
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.with_suffix(".turn").open("a") as turn, lock.open("a") as file:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(file, how)
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield
