"""What a panel asks of its tasks besides a valid receipt."""

from __future__ import annotations

from pydantic import Field

from smith.records.base import Record
from smith.records.receipt import Receipt


class Policy(Record):
    """What a panel asks for. A receipt that is pinned must fulfil each that is given."""

    min_sensitivity: float | None = Field(default=None, ge=0, le=1, exclude_if=lambda floor: floor is None)
    """The least share of planted faults that the tests must catch."""
    sanitize: bool = Field(default=False, exclude_if=lambda asked: not asked)
    """Whether a submission must be clean under the sanitizer too, and with it the reference, where the device is the
    interpreter."""

    def refusal(self, receipt: Receipt) -> str:
        """Why a receipt does not fulfil it, in one line; empty where it does."""
        return self._unseen(receipt) or self._unclean(receipt)

    def lacks(self, receipt: Receipt) -> str:
        """The option of ``smith validate`` that measures what is asked for and a receipt does not know; else empty."""
        if self.min_sensitivity is not None and receipt.sensitivity is None:
            return "--sensitivity"
        watched = receipt.sanitizer is not None or not receipt.device.startswith("interpreter")
        return "--sanitize" if self.sanitize and not watched else ""

    def _unseen(self, receipt: Receipt) -> str:
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

    def _unclean(self, receipt: Receipt) -> str:
        if not self.sanitize or not receipt.device.startswith("interpreter"):
            return ""
        report = receipt.sanitizer
        if report is None:
            return f"it was not validated under the sanitizer on {receipt.device}, and the panel asks for clean ones"
        if report.clean and not report.reference.not_passed:
            return ""
        why = str(report.reference.faults[0]) if report.reference.faults else "its tests do not pass there"
        return f"the reference itself is not clean on {receipt.device}: {why}"
