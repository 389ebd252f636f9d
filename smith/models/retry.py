"""Which failed calls may be made again, when, and what becomes of their hold."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from enum import Enum
from random import Random

SENDS = 4
"""Times that one call is sent at most."""
BACKOFF_S = (1.0, 4.0, 15.0)
LONGEST_WAIT_S = 120.0
"""An endpoint that asks for a longer pause is taken as unavailable."""

_TURNED_AWAY = frozenset({429, 503, 529})
_NO_MONEY = ("insufficient_quota", "billing")


class Class(Enum):
    """What an answer that is no success means."""

    TURNED_AWAY = "turned away"
    """Before any work was done: nothing was charged, and another try may be let in."""
    PERHAPS = "perhaps worked on"
    """The endpoint failed, perhaps after the work was done: nobody knows the charge. Another try may succeed."""
    REFUSED = "refused"
    """Nothing was charged, and no patience helps."""


def classify(status: int, code: str) -> Class:
    """The class of an HTTP status (not 200); ``code`` is the endpoint's own name for the fault."""
    if status in _TURNED_AWAY:
        return Class.REFUSED if any(mark in code for mark in _NO_MONEY) else Class.TURNED_AWAY
    return Class.PERHAPS if status == 408 or status >= 500 else Class.REFUSED


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds for which the endpoint asks to wait; ``headers`` by names in lower case."""
    value = headers.get("retry-after", "").strip()
    if value.replace(".", "", 1).isdigit() and len(value) < 13:
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def backoff(turn: int, random: Random) -> float:
    """Seconds to wait after try number ``turn`` (from 0): half to one and a half of a growing time."""
    return BACKOFF_S[min(turn, len(BACKOFF_S) - 1)] * (0.5 + random.random())
