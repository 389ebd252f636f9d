"""Panels: tasks pinned by tree, with the receipts that count."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from smith.errors import BadInput, RecordError, Stale, UnknownTask
from smith.freeze.bundle import Store
from smith.freeze.workloads import load_workload
from smith.paths import Layout
from smith.records.base import Name, read
from smith.records.panel import Panel, PanelTask
from smith.records.policy import Policy
from smith.records.receipt import Receipt, Verdict
from smith.verdict.recheck import recheck


def check_name(name: str) -> None:
    """Raise :class:`BadInput` where ``name`` is no name for a panel; before any path is made of it."""
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        raise BadInput(
            f"{name[:80]!r} is no name for a panel", hint="letters, digits, dots, dashes, underscores"
        ) from error


def load_panel(layout: Layout, name: str) -> Panel:
    """Read ``panels/<name>.toml``. Raises :class:`UnknownTask`, or :class:`RecordError` where it is broken."""
    check_name(name)
    path = layout.panel(name)
    if not path.is_file():
        known = sorted(p.stem for p in layout.panels.glob("*.toml")) if layout.panels.is_dir() else []
        raise UnknownTask(f"no panel {name} in {layout.panels}", hint=f"there are: {', '.join(known) or 'none yet'}")
    panel = Panel.load(path)
    if panel.name != name:
        raise RecordError(f"{path}: name is {panel.name}, but the file is {name}.toml")
    return panel


def blob_id(data: bytes) -> str:
    """The git blob id (SHA-1) of a file's bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass(frozen=True)
class StoredReceipt:
    """A receipt with the blob id of its file."""

    receipt: Receipt
    blob: str


def receipts_of(layout: Layout, task_id: str, tree: str) -> list[StoredReceipt]:
    """All receipts of one bundle tree, by device name. Raises :class:`RecordError` for a broken one."""
    folder = layout.tasks / "receipts" / task_id / tree
    found = []
    for path in sorted(folder.glob("*.json")):
        found.append(load_receipt(path, task_id, tree))
    return found


def load_receipt(path: Path, task_id: str, tree: str) -> StoredReceipt:
    """A receipt from its file. Raises :class:`RecordError` where it speaks of another task, tree or device."""
    data = read(path)
    receipt = Receipt.loads(data, str(path))
    if (receipt.task, receipt.tree, receipt.device.replace(":", "-")) != (task_id, tree, path.stem):
        raise RecordError(
            f"{path}: speaks of {receipt.task}, tree {receipt.tree[:12]}, {receipt.device}",
            hint="validate the task again",
        )
    return StoredReceipt(receipt, blob_id(data))


def valid_tasks(store: Store, policy: Policy | None = None) -> list[str]:
    """Every task with a valid receipt, for the tree that it has now, that ``policy`` lets pass.

    Raises :class:`BadInput` where there is none.
    """
    found = []
    for task_id in store.ids():
        receipts = receipts_of(store.layout, task_id, store.load(task_id).tree)
        if any(r.receipt.verdict is Verdict.VALID and not _refusal(policy, r.receipt) for r in receipts):
            found.append(task_id)
    if not found and policy is not None:
        raise BadInput(
            "no task has a valid receipt that the panel's policy lets pass",
            hint=f"smith validate --all{' --sensitivity' * (policy.min_sensitivity is not None)}"
            f"{' --sanitize' * policy.sanitize}",
        )
    if not found:
        raise BadInput("no task has a valid receipt", hint="smith validate --all")
    return found


def _refusal(policy: Policy | None, receipt: Receipt) -> str:
    return policy.refusal(receipt) if policy is not None else ""


def make_panel(
    store: Store,
    name: str,
    tasks: list[str],
    description: str = "",
    *,
    split: Literal["train", "held_out"] | None = None,
    replaces: Panel | None = None,
    policy: Policy | None = None,
) -> Panel:
    """Pin tasks by their trees and their valid receipts. What ``replaces`` another panel is its next revision.

    Raises :class:`BadInput` for a task without a valid receipt, or whose receipts ``policy`` refuses: a panel holds
    only tasks worth betting on.
    """
    pinned = []
    for task_id in tasks:
        bundle = store.load(task_id)
        receipts = receipts_of(store.layout, task_id, bundle.tree)
        valid = {r.receipt.device: r.blob for r in receipts if r.receipt.verdict is Verdict.VALID}
        if not valid:
            said = "; ".join(f"{r.receipt.device}: {r.receipt.verdict}" for r in receipts) or "not validated"
            raise BadInput(f"{task_id} has no valid receipt ({said})", hint=f"smith validate {task_id}")
        mine = [r.receipt for r in receipts if r.receipt.device in valid]
        refused = {one.device: _refusal(policy, one) for one in mine}
        valid = {device: blob for device, blob in valid.items() if not refused[device]}
        if not valid:
            asked = next(filter(None, (policy.lacks(one) for one in mine)), "") if policy is not None else ""
            do = f"smith validate {task_id} {asked}" if asked else f"smith task show {task_id}"
            raise BadInput(f"{task_id}: {'; '.join(refused.values())}", hint=f"{do}, or leave it out")
        pinned.append(PanelTask(id=task_id, tree=bundle.tree, receipts=valid))
    revision = 1
    if replaces is not None:
        sanitize = policy is not None and policy.sanitize
        changed = (replaces.tasks, replaces.sanitize) != (tuple(pinned), sanitize)
        revision = replaces.revision + changed
    return Panel(
        name=name,
        description=description,
        revision=revision,
        split=split,
        policy=policy,
        tasks=tuple(pinned),
    )


def check_panel(store: Store, panel: Panel) -> list[str]:
    """What is wrong with a panel, a line each: tasks that changed, receipts that are gone or differ."""
    faults = []
    for task in panel.tasks:
        try:
            bundle = store.load(task.id)
        except (RecordError, UnknownTask) as error:
            faults.append(str(error))
            continue
        if bundle.tree != task.tree:
            faults.append(f"{task.id}: the panel pins tree {task.tree[:12]}, the folder is {bundle.tree[:12]}")
            continue
        for device, blob in task.receipts.items():
            path = store.layout.receipt(task.id, task.tree, device)
            if not path.is_file():
                faults.append(f"{task.id}: the receipt for {device} is missing")
            elif blob_id(path.read_bytes()) != blob:
                faults.append(f"{task.id}: the receipt for {device} is not the one that the panel pins")
            else:
                faults += _receipt_faults(store, path, task)
    return faults


def _receipt_faults(store: Store, path: Path, task: PanelTask) -> list[str]:
    try:
        receipt = load_receipt(path, task.id, task.tree).receipt
    except RecordError as error:
        return [str(error)]
    if receipt.verdict is not Verdict.VALID:
        return [f"{task.id}: pinned on {receipt.device}, where it is {receipt.verdict}"]
    try:
        load_workload(store.layout, receipt)
    except (RecordError, Stale) as error:
        return [str(error)]
    if receipt.facts is None:
        return []  # of an earlier version: nothing to hold it against
    return [f"{task.id} on {receipt.device}: {difference}" for difference in recheck(receipt)]


def pinned_receipt(store: Store, task: PanelTask, device: str) -> StoredReceipt:
    """The pinned receipt of a task for ``device`` (``auto``: the first).

    Raises :class:`Stale` where bundle or receipt have changed since, :class:`BadInput` where that device is not
    pinned.
    """
    bundle = store.load(task.id)
    if bundle.tree != task.tree:
        raise Stale(
            f"{task.id} has changed: the panel pins tree {task.tree[:12]}, the folder is {bundle.tree[:12]}",
            hint="validate it and make the panel anew",
        )
    name = next(iter(task.receipts), "") if device == "auto" else device
    if name not in task.receipts:
        pinned = ", ".join(task.receipts) or "none"
        raise BadInput(f"{task.id}: the panel pins no receipt for {name or 'any device'}", hint=f"pinned: {pinned}")
    path = store.layout.receipt(task.id, task.tree, name)
    if not path.is_file() or blob_id(path.read_bytes()) != task.receipts[name]:
        raise Stale(f"{task.id}: the receipt for {name} is not the one pinned", hint="make the panel anew")
    return load_receipt(path, task.id, task.tree)
