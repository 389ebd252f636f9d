"""``smith validate``."""

from __future__ import annotations

import threading
from typing import Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from smith import sandbox as sandboxes
from smith.cli.common import (
    choose_tasks,
    device_option,
    json_option,
    print_json,
    progress,
    sandbox_option,
    screen,
    store,
)
from smith.errors import EXIT_NO, BadInput
from smith.freeze.bundle import Store
from smith.grade.environments import Environments
from smith.grade.trial import Bench
from smith.parallel import each
from smith.records.receipt import Receipt, Verdict
from smith.validate import sensitivity as planting
from smith.validate.devices import choose_device
from smith.validate.receipts import keep
from smith.validate.validate import Step, Validation, refused


@click.command("validate")
@click.argument("tasks", nargs=-1)
@click.option("--panel", help="All tasks of this panel.")
@click.option("--all", "everything", is_flag=True, help="All tasks of the data repository.")
@device_option
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each arm.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Tasks at a time.")
@click.option("--sensitivity", is_flag=True, help="Also plant faults in the references of valid tasks and count them.")
@click.option("--mutants", type=click.IntRange(min=0), metavar="N", help="Mutants of each reference (default 12).")
@click.option(
    "--sensitivity-budget", type=click.FloatRange(min=0), metavar="SECONDS", help="For all planted faults of one task."
)
@sandbox_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    tasks: tuple[str, ...],
    panel: str | None,
    everything: bool,
    device: str,
    repeats: int,
    jobs: int,
    sensitivity: bool,
    mutants: int | None,
    sensitivity_budget: float | None,
    sandbox: str,
    as_json: bool,
) -> None:
    """Run baseline and reference of TASKS in fresh places and write a receipt for each.

    A receipt that found the same before stays as it is, so that panels go on pinning it. Exit status 1 where a task is
    not valid.
    """
    found = store(ctx)
    if not sensitivity and (mutants is not None or sensitivity_budget is not None):
        raise BadInput("--mutants and --sensitivity-budget say how to measure sensitivity", hint="add --sensitivity")
    asked = None
    if sensitivity:
        asked = planting.Asked(planting.MUTANTS if mutants is None else mutants, sensitivity_budget)
    ids = choose_tasks(found, tasks, panel, everything)
    receipts = validate_all(found, ids, device=device, repeats=repeats, jobs=jobs, sandbox=sandbox, sensitivity=asked)
    if as_json:
        print_json({"tasks": [document(r) for r in receipts]})
    else:
        screen.print(table(receipts))
        for r in receipts:
            for reason in r.reasons:
                screen.print(Text(f"{r.task}: {reason}"))
            if r.planted is not None:
                screen.print(Text(f"{r.task}: {r.planted}"), soft_wrap=True)
        if any(r.planted is not None and r.planted.survivors for r in receipts):
            screen.print("the faults that survived: smith task show TASK --survivors")
    ctx.exit(0 if all(r.verdict is Verdict.VALID for r in receipts) else EXIT_NO)


def validate_all(
    found: Store,
    ids: list[str],
    *,
    device: str,
    repeats: int,
    jobs: int,
    sandbox: str,
    sensitivity: planting.Asked | None = None,
) -> list[Receipt]:
    """Validate tasks, ``jobs`` at a time, and write their receipts; results in the order asked for."""
    box_ = sandboxes.make(sandbox)
    environments = Environments(found.layout.environments, found.layout.logs)
    bundles = [found.load(task_id) for task_id in ids]
    choices = [choose_device(device, bundle.spec) for bundle in bundles]
    lock = threading.Lock()
    with progress("validating", len(bundles)) as show:

        def one(index: int) -> Receipt:
            bundle, choice = bundles[index], choices[index]
            if choice.refusal is not None:
                receipt = refused(bundle, choice.name, choice.refusal, box_.name)
            else:
                step: Step = lambda text: show(f"{bundle.id}: {text}", 0)  # noqa: E731
                with lock:
                    found.require_sources(bundle)
                bench = Bench(found, box_, choice.name)
                validation = Validation(bundle, bench, repeats=repeats, builder=environments.build, step=step)
                receipt = validation.receipt()
                if sensitivity and receipt.verdict is Verdict.VALID and validation.environment is not None:
                    # Kept first: whoever interrupts what follows loses nothing of the validation.
                    keep(receipt, found.layout.receipt(bundle.id, bundle.tree, choice.name))
                    receipt = planting.measured(receipt, bundle, bench, validation.environment, sensitivity, step)
            keep(receipt, found.layout.receipt(bundle.id, bundle.tree, choice.name))
            show(f"{bundle.id}: {receipt.verdict.value}", 1)
            return receipt

        receipts = dict(each(one, range(len(bundles)), jobs))
    return [receipts[index] for index in range(len(bundles))]


def document(receipt: Receipt) -> dict[str, Any]:
    """What ``smith validate --json`` says of one task."""
    whole = receipt.model_dump(mode="json")
    return {
        "id": receipt.task,
        "tree": receipt.tree,
        "device": receipt.device,
        "verdict": receipt.verdict.value,
        "reasons": [str(r) for r in receipt.reasons],
        "fail_to_pass": whole["fail_to_pass"],
        "pass_to_pass": whole["pass_to_pass"],
        "flaky": whole["flaky"],
        "sensitivity": receipt.sensitivity,
        "planted": whole.get("planted"),
        "seconds": receipt.seconds,
        "launches": whole["launches"],
        "timing": whole["timing"],
        "environment": receipt.environment.name if receipt.environment else None,
        "not_proved": whole["not_proved"],
    }


_STYLES = {Verdict.VALID: "green", Verdict.INVALID: "red", Verdict.UNRESOLVABLE: "yellow"}


def table(receipts: list[Receipt]) -> Table:
    """Receipts as a table for the terminal."""
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("task", "device", "verdict"):
        shown.add_column(name, no_wrap=True)
    asked = any(r.planted is not None for r in receipts)
    more = ["faults\ncaught"] if asked else []
    for name in ("fail to\npass", "pass to\npass", "flaky", *more, "speed-up", "seconds"):
        shown.add_column(name, justify="right")
    for r in receipts:
        shown.add_row(
            Text(r.task),
            Text(r.device),
            Text(r.verdict.value, style=_STYLES[r.verdict]),
            str(len(r.fail_to_pass)),
            str(len(r.pass_to_pass)),
            str(len(r.flaky)),
            *([f"{r.sensitivity:.0%}" if r.sensitivity is not None else "-"] if asked else []),
            f"{r.timing.geomean:.2f}x" if r.timing else "-",
            f"{r.seconds:.1f}",
        )
    return shown
