"""Receipts are kept as files, and confirmed rather than replaced."""

from __future__ import annotations

from pathlib import Path

from smith.errors import RecordError
from smith.records.receipt import Receipt


def keep(receipt: Receipt, path: Path) -> None:
    """Write a receipt, unless the one that is there found the same: panels pin receipts by their bytes, and a
    confirmation must not make them stale. One that cannot be checked again gives way to one that can."""
    if path.is_file():
        try:
            before = Receipt.load(path)
        except RecordError:
            before = None  # a broken one is replaced
        if before is not None and receipt.agrees_with(before) and (before.facts is not None or receipt.facts is None):
            return
    receipt.save(path)
