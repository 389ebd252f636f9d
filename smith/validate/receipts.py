"""Receipts are kept as files, and confirmed rather than replaced."""

from __future__ import annotations

from pathlib import Path

from smith.errors import RecordError
from smith.records.receipt import Receipt


def keep(receipt: Receipt, path: Path, *, ran: bool = True) -> None:
    """Write a receipt, unless the one that is there says as much: panels pin receipts by their bytes, and what only
    confirms one must not make it stale.

    One that cannot be checked again gives way to one that can; what only it was asked for (targets, the sanitizer,
    planted faults) goes into the new one where both found the same. One that ``ran`` nothing, because the device is
    elsewhere or busy, replaces none that tells of runs.
    """
    if path.is_file():
        try:
            before = Receipt.load(path)
        except RecordError:
            before = None  # a broken one is replaced
        if before is not None and before.arms and not ran:
            return
        if before is not None and receipt.agrees_with(before):
            if (before.facts is not None or receipt.facts is None) and not receipt.adds_to(before):
                return
            receipt = receipt.with_what_it_lacks(before)
    receipt.save(path)
