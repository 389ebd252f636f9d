"""Whether the receipts that evidence rests on are here, are the very ones, and say what their own facts say."""

from __future__ import annotations

from collections.abc import Iterator

from smith.errors import RecordError
from smith.freeze.bundle import Store
from smith.freeze.panels import StoredReceipt, load_receipt
from smith.records.receipt import Verdict
from smith.records.sealed import Use
from smith.verdict.recheck import recheck


class Receipts:
    """Receipts of a data repository, each read and checked once."""

    def __init__(self, store: Store) -> None:
        self._layout = store.layout
        self._read: dict[tuple[str, str, str], StoredReceipt | str | None] = {}
        self._forged: dict[str, str] = {}

    def faults(self, use: Use) -> Iterator[tuple[str, str]]:
        """A code and a sentence for each thing that is wrong with the receipt of one use."""
        stored = self._stored(use)
        if stored is None:
            yield "receipt_missing", f"there is no receipt for {use.device} of tree {use.tree[:12]}"
            return
        if isinstance(stored, str):
            yield "receipt_forged", stored
            return
        if stored.blob != use.receipt:
            yield "receipt_digest", f"the receipt for {use.device} is not the one that it was graded by"
        receipt = stored.receipt
        if receipt.verdict is not Verdict.VALID:
            yield "receipt_invalid", f"the receipt says {receipt.verdict.value}: nothing measured on it counts"
        if stored.blob not in self._forged:
            differences = recheck(receipt) if receipt.facts is not None else []
            self._forged[stored.blob] = str(differences[0]) if differences else ""
        if said := self._forged[stored.blob]:
            yield "receipt_forged", said
        wanted = (len(receipt.fail_to_pass), len(receipt.pass_to_pass))
        if (use.fail_to_pass.total, use.pass_to_pass.total) != wanted:
            yield (
                "receipt_digest",
                f"it counts {use.fail_to_pass.total} and {use.pass_to_pass.total} tests, the receipt "
                f"{wanted[0]} and {wanted[1]}",
            )
        if use.speed is not None and receipt.timing is None:
            yield "receipt_invalid", "the reference itself was not measured to be faster"

    def _stored(self, use: Use) -> StoredReceipt | str | None:
        key = (use.task, use.tree, use.device)
        if key not in self._read:
            path = self._layout.receipt(*key)
            try:
                self._read[key] = load_receipt(path, use.task, use.tree) if path.is_file() else None
            except RecordError as error:
                self._read[key] = error.message.removeprefix(f"{path}: ")
        return self._read[key]
