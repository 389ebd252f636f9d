"""Prices of models that a data repository states itself."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field, model_validator

from smith.records.base import Record

Dollars = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class PriceRow(Record):
    """The table ``[prices."provider/model"]``: it comes before what genai-prices says, and 0 is believed."""

    input_mtok: Dollars | None = None
    """Dollars for a million input tokens."""
    output_mtok: Dollars | None = None
    """Dollars for a million output tokens, reasoning among them."""
    cache_read_mtok: Dollars | None = None
    """Dollars for a million input tokens read from the provider's cache; as ``input_mtok`` where it is not given."""
    cache_write_mtok: Dollars | None = None
    """Dollars for a million input tokens written to the provider's cache; as ``input_mtok`` where it is not given."""
    request: Dollars = Decimal(0)
    """Dollars for every call."""
    device_hour: Dollars | None = None
    """Dollars for an hour of the device that serves the model: for models that run on one's own machine."""

    @model_validator(mode="after")
    def _is_a_price(self) -> PriceRow:
        if (self.input_mtok is None) != (self.output_mtok is None):
            raise ValueError("a price needs both input_mtok and output_mtok")
        if self.input_mtok is None and self.device_hour is None:
            raise ValueError("a price needs input_mtok and output_mtok, or device_hour")
        return self
