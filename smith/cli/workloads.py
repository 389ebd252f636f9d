"""Recorded workloads on the terminal, and as an addition to a receipt that is there."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from smith.cli.common import screen
from smith.errors import BadInput, RecordError, Stale
from smith.freeze.bundle import Bundle, Store
from smith.freeze.panels import receipts_of
from smith.freeze.workloads import keep_workload, load_workload
from smith.grade.environments import Environments
from smith.grade.trial import Bench
from smith.harness.environment import TestEnvironment
from smith.records.receipt import Receipt, Verdict
from smith.records.workload import Workload
from smith.validate.validate import Step
from smith.validate.workloads import noted, record


def valid_receipt(found: Store, bundle: Bundle, device: str) -> Receipt:
    """The valid receipt of this tree on ``device``, to be added to. Raises :class:`BadInput` where there is none."""
    for stored in receipts_of(found.layout, bundle.id, bundle.tree):
        if stored.receipt.device == device and stored.receipt.verdict is Verdict.VALID:
            return stored.receipt
    raise BadInput(f"{bundle.id} has no valid receipt on {device} to add to", hint=f"smith validate {bundle.id}")


def with_workload(
    found: Store,
    receipt: Receipt,
    bundle: Bundle,
    bench: Bench,
    environment: TestEnvironment,
    step: Step,
    known: Workload | None = None,
) -> Receipt:
    """A valid receipt with the workload recorded for it, or the ``known`` one; the workload itself is written."""
    workload = record(bench, bundle, environment, receipt, step) if known is None else known
    keep_workload(found.layout, workload)
    return noted(receipt, workload)


def known(found: Store, path: Path) -> Workload | None:
    """The workload of the receipt in the file ``path``; None where it has none that can be read."""
    try:
        return load_workload(found.layout, Receipt.load(path))
    except (RecordError, Stale):
        return None


def added(
    found: Store, bundle: Bundle, receipt: Receipt, bench: Bench, environments: Environments, step: Step
) -> Receipt:
    """A receipt that is there, with a workload recorded in the environment that it was found in."""
    environment = environments.for_receipt(bundle.recipe, receipt)
    return with_workload(found, receipt, bundle, bench, environment, step)


def show(found: Store, bundle: Bundle, receipts: list[Receipt]) -> None:
    """The recorded calls of a task, a table for each device."""
    known = False
    for receipt in receipts:
        workload = load_workload(found.layout, receipt)
        if workload is not None:
            known = True
            screen.print(Text(f"{bundle.id} on {receipt.device}: {receipt.workload}"), soft_wrap=True)
            screen.print(_calls(workload))
            if workload.left_out:
                screen.print(_left_out(workload))
    if not known:
        screen.print(Text(f"{bundle.id}: no workload was recorded: smith validate {bundle.id} --workloads"))


def _calls(workload: Workload) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("call (~ not contiguous, * with gradient)", overflow="fold")
    for name in ("s", "moves by"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("the base", overflow="fold", max_width=40)
    for number, one in enumerate(workload.calls, start=1):
        worst = max(one.errors.values(), default=0.0)
        base = Text(one.base or "the same", style="" if one.base else "dim")
        table.add_row(str(number), Text(str(one.call)), f"{one.seconds:.2f}", f"{worst:.1g}", base)
    return table


def _left_out(workload: Workload) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("left out", justify="right")
    table.add_column("why", no_wrap=True)
    table.add_column("entry", overflow="fold")
    table.add_column("detail", overflow="fold")
    for one in workload.left_out:
        table.add_row(str(one.count), one.reason, Text(one.entry or "-"), Text(one.detail))
    return table
