"""Rate limits: how much is left, how long to wait, when to stop instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from smith.errors import Unavailable

SECONDARY_S = 60.0
"""The least wait after a secondary limit that names no time; doubled each time (GitHub's documented advice)."""


class RateLimited(Unavailable):
    """The forge will not answer for longer than the caller would wait. ``until``: seconds since the epoch."""

    def __init__(self, message: str, *, until: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.until = until


@dataclass(frozen=True)
class Quota:
    """The primary limit: ``remaining`` of ``limit`` requests until ``reset``, on this machine's clock."""

    limit: int
    remaining: int
    reset: float

    def wait(self, now: float) -> float:
        """Seconds until a request is allowed."""
        return max(0.0, self.reset - now + 1) if self.remaining <= 0 else 0.0

    def __str__(self) -> str:
        return f"{self.remaining:,} of {self.limit:,} requests left until {moment(self.reset)}"


def moment(when: float) -> str:
    """A time for people, in UTC."""
    try:
        return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return "some day"


def read_quota(headers: Mapping[str, str], now: float) -> Quota | None:
    """The primary limit as the headers of an answer tell it; None where they do not."""
    limit, remaining, reset = (_number(headers.get(f"x-ratelimit-{key}")) for key in ("limit", "remaining", "reset"))
    if limit is None or remaining is None or reset is None:
        return None
    # The reset is told by the server's clock, which need not be ours.
    return Quota(int(limit), int(remaining), now + reset - (_date(headers.get("date")) or now))


def pause(status: int, headers: Mapping[str, str], message: str, now: float, before: int) -> float | None:
    """Seconds to wait after a refusal; None where it is no rate limit. ``before`` such refusals came already."""
    if status not in (403, 429):
        return None
    after = retry_after(headers, now)
    if after is not None:
        return max(1.0, after)
    quota = read_quota(headers, now)
    if quota is not None and quota.remaining <= 0:
        return max(1.0, quota.wait(now))
    words = message.lower()
    if status == 429 or "rate limit" in words or "abuse detection" in words:
        return SECONDARY_S * float(2 ** min(before, 10))
    return None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """``Retry-After`` in seconds, whether it is given as a number or as a date."""
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and (date := _date(value)) is not None:
        seconds = date - (_date(headers.get("date")) or now)
    return seconds


def _number(value: str | None) -> float | None:
    value = (value or "").strip()
    return float(value) if value.isascii() and value.isdigit() and len(value) < 13 else None


def _date(value: str | None) -> float | None:
    try:
        return parsedate_to_datetime(value or "").timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
