"""``smith validate``."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from smith import sandbox as sandboxes
from smith.cli import isa, workloads
from smith.cli.common import (
    choose_tasks,
    device_option,
    device_wait_option,
    json_option,
    machine_devices,
    print_json,
    progress,
    sandbox_option,
    screen,
    store,
)
from smith.cli.recheck import all_receipts, recheck_files
from smith.errors import EXIT_NO, BadInput
from smith.freeze.bundle import Store
from smith.freeze.workloads import forget_unnamed
from smith.gpus.lease import DeviceBusy
from smith.grade.devices import Devices
from smith.grade.environments import Environments
from smith.grade.trial import Bench
from smith.harness.compiling import processors
from smith.parallel import Slots, each
from smith.records.receipt import Receipt, Verdict
from smith.records.recipe import EnvironmentChoice
from smith.validate import sensitivity as planting
from smith.validate.devices import choose_device
from smith.validate.gate import Gate, parse_targets
from smith.validate.gate_files import file_reports
from smith.validate.receipts import keep
from smith.validate.sanitize import told
from smith.validate.validate import Step, Validation, refused


@click.command("validate")
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.option("--panel", help="All tasks of this panel.")
@click.option("--all", "everything", is_flag=True, help="All tasks of the data repository.")
@device_option
@device_wait_option
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each arm.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Sandboxes at a time: tasks, and where fewer are left the runs of a task (not on a GPU).",
)
@click.option("--sanitize", is_flag=True, help="Also look for wild, uninitialised and racing accesses (interpreter).")
@click.option("--targets", help="Compile the captured launches for these GPUs too, e.g. gfx942,gfx950,sm_90.")
@click.option("--sensitivity", is_flag=True, help="Also plant faults in the references of valid tasks and count them.")
@click.option("--mutants", type=click.IntRange(min=0), metavar="N", help="Mutants of each reference (default 12).")
@click.option(
    "--sensitivity-budget", type=click.FloatRange(min=0), metavar="SECONDS", help="For all planted faults of one task."
)
@click.option(
    "--workloads",
    "recording",
    is_flag=True,
    help="Also record the calls of the tests of valid tasks: every submission is then held against the reference in "
    "them, on fresh inputs.",
)
@click.option("--add", is_flag=True, help="With --workloads: do not validate again, add to the valid receipt.")
@sandbox_option
@click.option(
    "--recheck", is_flag=True, help="Run nothing: TASKs are receipt files; repeat the decision of each from its facts."
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    tasks: tuple[str, ...],
    panel: str | None,
    everything: bool,
    device: str,
    device_wait: float,
    repeats: int,
    jobs: int,
    sanitize: bool,
    targets: str | None,
    sensitivity: bool,
    mutants: int | None,
    sensitivity_budget: float | None,
    recording: bool,
    add: bool,
    sandbox: str,
    recheck: bool,
    as_json: bool,
) -> None:
    """Run baseline and reference of TASKs in fresh places and write a receipt for each.

    A receipt that found the same before stays as it is, so that panels go on pinning it; only one that holds too few
    facts to be checked again (made by an earlier version) is replaced. Exit status 1 where a task is not valid.
    With --sanitize one more run of both is watched: what it finds stands in the receipt, and the verdict does not hang
    on it. With --targets every distinct launch of a kernel that the tests made is compiled for each target; that needs
    no GPU and does not change the verdict. With --workloads the calls of the tests are recorded beside the receipt, and
    every grade needs agreement with the reference in them; a performance task on cpu without a workload file is timed
    on them. With --sensitivity small faults are planted in the reference and tried on the tests; those that survive are
    held against it in recorded calls too, where there are any, also in other shapes and layouts.

    With --recheck the arguments are receipt files (with --all: every receipt of the data repository). Exit status 0
    where each says what follows from the facts in it, 1 where one does not (a line for each difference) or holds too
    few facts, 2 where one cannot be read.
    """
    if recheck:
        if panel is not None or bool(tasks) == everything:
            raise BadInput("--recheck needs receipt files, or --all", hint="smith panel check also checks them")
        paths = all_receipts(store(ctx)) if everything else [Path(name) for name in tasks]
        ctx.exit(recheck_files(paths, as_json))
    found = store(ctx)
    if add and (not recording or sanitize or sensitivity or targets):
        raise BadInput("--add goes with --workloads alone", hint="smith validate TASK --workloads --add")
    if not sensitivity and (mutants is not None or sensitivity_budget is not None):
        raise BadInput("--mutants and --sensitivity-budget say how to measure sensitivity", hint="add --sensitivity")
    asked = None
    if sensitivity:
        asked = planting.Asked(planting.MUTANTS if mutants is None else mutants, sensitivity_budget)
    ids = choose_tasks(found, tasks, panel, everything)
    gate = Gate(parsed, max(1, processors() // jobs)) if (parsed := parse_targets(targets)) else None
    devices = machine_devices(device_wait)
    receipts = validate_all(
        found,
        ids,
        device=device,
        repeats=repeats,
        jobs=jobs,
        sandbox=sandbox,
        devices=devices,
        sanitizer=sanitize,
        gate=gate,
        sensitivity=asked,
        recording=recording,
        add=add,
    )
    if as_json:
        print_json({"tasks": [document(r) for r in receipts]})
    else:
        screen.print(table(receipts))
        if gate is not None:
            screen.print(isa.summary(receipts))
        for r in receipts:
            for line in remarks(r):
                screen.print(Text(f"{r.task}: {line}"), soft_wrap=True)
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
    devices: Devices,
    sanitizer: bool = False,
    gate: Gate | None = None,
    sensitivity: planting.Asked | None = None,
    recording: bool = False,
    add: bool = False,
) -> list[Receipt]:
    """Validate tasks, ``jobs`` at a time, and write their receipts; results in the order asked for.

    With ``add`` those that are there and valid are only added to.
    """
    box_ = sandboxes.make(sandbox)
    environments = Environments(found.layout.environments, found.layout.logs)
    bundles = [found.load(task_id) for task_id in ids]
    choices = [choose_device(device, bundle.spec, devices.machine) for bundle in bundles]
    there = [workloads.valid_receipt(found, b, c.name) for b, c in zip(bundles, choices, strict=True)] if add else []
    lock, slots = threading.Lock(), Slots(jobs)
    with progress("validating", len(bundles)) as show:

        def one(index: int) -> Receipt:
            with slots.held():
                return held(index)

        def held(index: int) -> Receipt:
            bundle, choice = bundles[index], choices[index]
            refusal = choice.refusal
            if refusal is None:
                step: Step = lambda text: show(f"{bundle.id}: {text}", 0)  # noqa: E731
                with lock:
                    found.require_sources(bundle)
                try:
                    with devices.bench(found, box_, choice.name, purpose=f"validate {bundle.id}", step=step) as bench:
                        if add:
                            receipt = workloads.added(found, bundle, there[index], bench, environments, step)
                            keep(receipt, found.layout.receipt(bundle.id, bundle.tree, choice.name))
                            forget_unnamed(found.layout, bundle.id, bundle.tree)
                            show(f"{bundle.id}: {receipt.workload}", 1)
                            return receipt
                        validation = Validation(
                            bundle,
                            bench,
                            repeats=repeats,
                            builder=environments.build,
                            step=step,
                            sanitizer=sanitizer,
                            gate=gate,
                            recording=recording,
                            slots=slots,
                        )
                        receipt = validation.receipt()
                        if receipt.verdict is Verdict.VALID and validation.environment is not None:
                            environment = validation.environment
                            where = found.layout.receipt(bundle.id, bundle.tree, choice.name)
                            if recording:
                                if validation.workload is None:
                                    keep(receipt, where)
                                receipt = workloads.with_workload(
                                    found, receipt, bundle, bench, environment, step, validation.workload
                                )
                            if sensitivity:
                                # Kept first: whoever interrupts what follows loses nothing of the validation.
                                keep(receipt, where)
                                known = workloads.known(found, where)
                                receipt = planting.measured(
                                    receipt, bundle, bench, environment, sensitivity, step, known
                                )
                except DeviceBusy as error:
                    refusal = str(error)
            if refusal is not None:
                compiled = {}
                if gate is not None:  # which asks for no device
                    bench = Bench(found, box_, choice.name)
                    plain = environments.build(EnvironmentChoice(name="default"))
                    compiled = file_reports(bench, bundle, plain, gate.targets, gate.jobs)
                receipt = refused(bundle, choice.name, refusal, box_.name, compiled)
            keep(receipt, found.layout.receipt(bundle.id, bundle.tree, choice.name), ran=refusal is None)
            if recording:
                forget_unnamed(found.layout, bundle.id, bundle.tree)
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
        "flaky_rates": whole.get("flaky_rates", {}),
        "base_fails": whole.get("base_fails"),
        "nothing_fails": whole.get("nothing_fails"),
        "sensitivity": receipt.sensitivity,
        "planted": whole.get("planted"),
        "seconds": receipt.seconds,
        "launches": whole["launches"],
        "timing": whole["timing"],
        "sanitizer": whole.get("sanitizer"),
        "environment": receipt.environment.name if receipt.environment else None,
        "hardware": whole.get("hardware"),
        "not_proved": whole["not_proved"],
        **({"targets": whole["targets"]} if receipt.targets else {}),
        **({"workload": whole["workload"]} if receipt.workload is not None else {}),
    }


_STYLES = {Verdict.VALID: "green", Verdict.INVALID: "red", Verdict.UNRESOLVABLE: "yellow"}


def remarks(receipt: Receipt) -> list[str]:
    """What is to be said of a receipt besides its row in the table: reasons, unstable tests, weak evidence."""
    lines = [str(reason) for reason in receipt.reasons]
    for test in receipt.flaky:
        rate = receipt.flaky_rates.get(test)
        often = f" (passes {rate.reference} on the reference, {rate.nop} on the base)" if rate else ""
        lines.append(f"unstable, left out: {test}{often}")
    if receipt.base_fails is not None and receipt.base_fails.weak:
        how = receipt.base_fails.failure.value
        lines.append(f"weak: on the base no fail-to-pass test gets as far as comparing a result (at best: {how})")
    lines += [str(receipt.planted)] if receipt.planted is not None else []
    lines += [str(receipt.workload)] if receipt.workload is not None else []
    return lines + (told(receipt.sanitizer) if receipt.sanitizer is not None else [])


def table(receipts: list[Receipt]) -> Table:
    """Receipts as a table for the terminal."""
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("task", "device", "verdict"):
        shown.add_column(name, no_wrap=True)
    shown.add_column("base fails by", no_wrap=True)
    asked = any(r.planted is not None for r in receipts)
    more = ["faults\ncaught"] if asked else []
    for name in ("fail to\npass", "pass to\npass", "flaky", *more, "speed-up", "seconds"):
        shown.add_column(name, justify="right")
    for r in receipts:
        shown.add_row(
            Text(r.task),
            Text(r.device),
            Text(r.verdict.value, style=_STYLES[r.verdict]),
            f"{r.base_fails.failure.value} ({r.base_fails.rank})" if r.base_fails else "-",
            str(len(r.fail_to_pass)),
            str(len(r.pass_to_pass)),
            str(len(r.flaky)),
            *([f"{r.sensitivity:.0%}" if r.sensitivity is not None else "-"] if asked else []),
            f"{r.timing.geomean:.2f}x" if r.timing else "-",
            f"{r.seconds:.1f}",
        )
    return shown
