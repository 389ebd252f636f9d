"""Recorded workloads as files: beside the receipts, named by content, and no part of any bundle."""

from __future__ import annotations

import hashlib

from smith.errors import RecordError, Stale
from smith.paths import Layout, write_atomically
from smith.records.base import read
from smith.records.receipt import Receipt
from smith.records.workload import Workload


def load_workload(layout: Layout, receipt: Receipt) -> Workload | None:
    """The workload that a receipt names; None where it names none.

    Raises :class:`Stale` where the file is gone or is another one, :class:`RecordError` where it is broken.
    """
    if receipt.workload is None:
        return None
    path = layout.workload(receipt.task, receipt.tree, receipt.workload.sha256)
    hint = f"smith validate {receipt.task} --workloads"
    if not path.is_file():
        raise Stale(f"{path}: the workload that the receipt names is missing", hint=hint)
    data = read(path)
    if hashlib.sha256(data).hexdigest() != receipt.workload.sha256:
        raise Stale(f"{path}: is not the workload that the receipt names", hint=hint)
    workload = Workload.loads(data, str(path))
    if (workload.task, workload.tree, workload.device) != (receipt.task, receipt.tree, receipt.device):
        raise RecordError(f"{path}: speaks of {workload.task} on {workload.device}", hint=hint)
    return workload


def keep_workload(layout: Layout, workload: Workload) -> None:
    """Write a workload, before the receipt that names it."""
    write_atomically(layout.workload(workload.task, workload.tree, workload.digest), workload.dumps())


def forget_unnamed(layout: Layout, task_id: str, tree: str) -> None:
    """Remove the workloads of a bundle that no receipt of it names any longer."""
    folder = layout.workload(task_id, tree, "").parent
    named = set()
    for path in folder.parent.glob("*.json"):
        try:
            note = Receipt.load(path).workload
        except RecordError:
            return  # who knows what it names
        named |= {note.sha256} if note is not None else set()
    for path in folder.glob("*.json"):
        if path.stem not in named:
            path.unlink(missing_ok=True)
