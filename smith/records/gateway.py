"""Settings of the gateway."""

from __future__ import annotations

from pydantic import Field

from smith.records.base import Record


class RateRow(Record):
    """The table ``[rates."provider"]``: how fast a provider may be called, by all attempts together."""

    requests_per_minute: int | None = Field(default=None, gt=0)
    at_once: int | None = Field(default=None, gt=0)
    """Calls that may be under way at the same time."""
