"""What a panel asks of its tasks besides a valid receipt."""

from __future__ import annotations

from pydantic import Field

from smith.records.base import Record
from smith.records.receipt import Receipt


class Policy(Record):
    """The floors of a panel. A receipt that is pinned must fulfil each that is given."""

    min_sensitivity: float | None = Field(default=None, ge=0, le=1, exclude_if=lambda floor: floor is None)
    """The least share of planted faults that the tests must catch."""

    def refusal(self, receipt: Receipt) -> str:
        """Why a receipt does not fulfil it, in one line; empty where it does."""
        floor = self.min_sensitivity
        if floor is None:
            return ""
        if receipt.sensitivity is None:
            return f"its sensitivity on {receipt.device} was not measured, and the panel asks for {floor:.2f}"
        if receipt.sensitivity < floor:
            return (
                f"its tests on {receipt.device} catch {receipt.sensitivity:.2f} of the planted faults, and the panel "
                f"asks for {floor:.2f}"
            )
        return ""
