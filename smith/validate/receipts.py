"""Receipts are kept as files, and confirmed rather than replaced."""

from __future__ import annotations

from pathlib import Path

from smith.errors import RecordError
from smith.records.receipt import Receipt


def keep(receipt: Receipt, path: Path, *, ran: bool = True) -> None:
    """Write a receipt, unless the one that is there found the same: panels pin receipts by their bytes, and a
    confirmation must not make them stale. One that cannot be checked again gives way to one that can; and one that
    ``ran`` nothing, because the device is elsewhere or busy, replaces none that tells of runs."""
    if path.is_file():
        try:
            before = Receipt.load(path)
        except RecordError:
            before = None  # a broken one is replaced
        same = before is not None and receipt.agrees_with(before)
        if before is not None and (
            (same and (before.facts is not None or receipt.facts is None)) or (before.arms and not ran)
        ):
            return
    receipt.save(path)
