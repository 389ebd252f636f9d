"""``smith validate --recheck``: receipts, decided again from the facts in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from smith.cli.common import console, print_json, screen
from smith.errors import EXIT_BAD_INPUT, EXIT_NO, EXIT_OK, BadInput, RecordError
from smith.freeze.bundle import Store
from smith.records.receipt import Receipt
from smith.verdict.recheck import TOO_FEW, recheck


@dataclass(frozen=True)
class Rechecked:
    """What came of one file. ``error``: it is no receipt; ``differences`` else, a line each."""

    path: str
    receipt: Receipt | None
    differences: tuple[str, ...] = ()
    error: str = ""

    def document(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "task": self.receipt.task if self.receipt else None,
            "device": self.receipt.device if self.receipt else None,
            "verdict": self.receipt.verdict.value if self.receipt else None,
            "agrees": self.receipt is not None and not self.differences,
            "differences": list(self.differences),
            "error": self.error or None,
        }


def all_receipts(store: Store) -> list[Path]:
    """Every receipt of the data repository. Raises :class:`BadInput` where there is none."""
    found = sorted((store.layout.tasks / "receipts").glob("*/*/*.json"))
    if not found:
        raise BadInput(f"{store.layout.tasks / 'receipts'} holds no receipt", hint="smith validate --all")
    return found


def recheck_files(paths: list[Path], as_json: bool) -> int:
    """Check receipts again and print what came of it; the exit status: 0 all agree, 1 one does not, 2 one is none."""
    found = [_one(path) for path in paths]
    if as_json:
        print_json({"receipts": [each.document() for each in found]})
    else:
        for each in found:
            _say(each)
    if any(each.error for each in found):
        return EXIT_BAD_INPUT
    return EXIT_NO if any(each.differences for each in found) else EXIT_OK


def _one(path: Path) -> Rechecked:
    try:
        receipt = Receipt.load(path)
    except RecordError as error:
        return Rechecked(str(path), None, error=str(error))
    if receipt.facts is None:
        return Rechecked(str(path), receipt, (TOO_FEW,))
    return Rechecked(str(path), receipt, tuple(map(str, recheck(receipt))))


def _say(each: Rechecked) -> None:
    if each.receipt is None:
        console.print(Text(f"smith: {each.error}"), soft_wrap=True)
        return
    name = f"{each.receipt.task} on {each.receipt.device}"
    for difference in each.differences:
        screen.print(Text(f"{name}: {difference}"), soft_wrap=True)
    if not each.differences:
        screen.print(Text(f"{name}: {each.receipt.verdict.value}, as its facts say"), soft_wrap=True)
