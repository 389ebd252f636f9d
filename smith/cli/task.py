"""``smith task``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from smith.cli import isa, workloads
from smith.cli.common import json_option, print_json, screen, store
from smith.cli.planted import fault_table, in_calls, shape_table
from smith.cli.validate import document, remarks
from smith.errors import EXIT_NO, BadInput
from smith.freeze.bundle import Bundle
from smith.freeze.panels import receipts_of
from smith.freeze.workloads import load_workload
from smith.git.trees import materialise
from smith.records.receipt import Receipt
from smith.records.task import Variant


@click.group("task")
def command() -> None:
    """Show, verify or open a task bundle."""


@command.command("show")
@click.argument("task")
@click.option("--isa", "as_isa", is_flag=True, help="Show what its kernels compiled to, base beside reference.")
@click.option("--faults", is_flag=True, help="What became of each fault planted in the reference, and by which test.")
@click.option("--survivors", is_flag=True, help="The planted faults that no test catches, as diffs.")
@click.option("--workload", is_flag=True, help="The recorded calls, and those that were left out.")
@json_option
@click.pass_context
def show(
    ctx: click.Context, task: str, as_isa: bool, faults: bool, survivors: bool, workload: bool, as_json: bool
) -> None:
    """Show TASK: what it is, and what is known about it."""
    found = store(ctx)
    bundle = found.load(task)
    receipts = [s.receipt for s in receipts_of(found.layout, bundle.id, bundle.tree)]
    if (faults or survivors) and not as_json:
        _planted(bundle.id, receipts, faults)
        return
    if workload and not as_json:
        workloads.show(found, bundle, receipts)
        return
    if as_json:
        known = [load_workload(found.layout, r) for r in receipts] if workload else []
        print_json(
            {
                **({"workloads": [one.model_dump(mode="json") for one in known if one is not None]} if known else {}),
                "id": bundle.id,
                "tree": bundle.tree,
                "task": bundle.spec.model_dump(mode="json"),
                "selection": bundle.selection.model_dump(mode="json"),
                "probes": [p.model_dump(mode="json") for p in bundle.probes],
                "receipts": [document(r) for r in receipts],
            }
        )
        return
    if as_isa:
        isa.show(bundle.id, receipts)
        return
    source = bundle.spec.source
    lines = [
        f"{bundle.id}  {bundle.tree}",
        f"  {_variant(bundle)}{bundle.spec.kind.value} in {', '.join(bundle.spec.languages)}",
        f"  runs on {', '.join(bundle.spec.devices) or 'no known device'}",
        f"  {source.repo}#{source.pr}, merged {source.merged_at[:10]}, licence {source.license or 'unknown'}",
        f"  base {source.base[:12]} (tree {source.tree[:12]})",
        *[f"  kernel {k.path}: {', '.join(k.symbols) or '-'}" for k in bundle.spec.kernels],
        f"  editable {', '.join(bundle.spec.editable)}",
        f"  tests {', '.join(bundle.selection.files) or '-'}",
        *[f"  guards {g}" for g in bundle.selection.guards],
        *[f"  extra test {path}" for path in bundle.selection.authored],
        *[f"  {p.kind} solution {p.name}: {p.focus}" for p in bundle.probes],
        *[f"  interface {i}" for i in bundle.spec.interface],
        *[f"  leak {leak}" for leak in bundle.spec.leaks],
    ]
    for r in receipts:
        lines.append(
            f"  {r.device}: {r.verdict.value}, {len(r.fail_to_pass)} fail-to-pass, {len(r.pass_to_pass)} pass-to-pass"
            + (f", on the base {r.base_fails.failure.value}" if r.base_fails else "")
            + "".join(f"; {line}" for line in remarks(r))
        )
        lines += [f"    {line}" for line in isa.lines(r)]
    if not receipts:
        lines.append("  no receipt for this tree: validate it")
    for line in lines:
        screen.print(Text(line), soft_wrap=True)


def _planted(task: str, receipts: list[Receipt], every: bool) -> None:
    """The planted faults of each device: all in a table, or the survivors' diffs."""
    known = [(r.device, r.planted) for r in receipts if r.planted is not None]
    if not known:
        screen.print(Text(f"{task}: no faults were planted: smith validate {task} --sensitivity"), soft_wrap=True)
    for device, planted in known:
        screen.print(Text(f"{task} on {device}: {planted}; {planted.sites} sites for mutants, {planted.seconds:.0f} s"))
        if every:
            screen.print(fault_table(planted))
            if planted.shapes is not None:
                screen.print(shape_table(planted.shapes))
            continue
        for fault in planted.survivors:
            where = f" in {fault.kernel}" if fault.kernel else ""
            screen.print()
            screen.print(Text(f"{fault.name}{where}: every test passes with it", style="bold"), soft_wrap=True)
            if fault.seed is not None:
                words = f"with the seeds of the tests moved by {fault.seed} this one does not: {fault.seed_test}"
                screen.print(Text(words), soft_wrap=True)
            if (seen := fault.in_calls) is not None:
                screen.print(Text(f"{in_calls(seen)}: {seen.call}: {seen.difference}"), soft_wrap=True)
            screen.print(Text(fault.diff.rstrip("\n")), soft_wrap=True)


def _variant(bundle: Bundle) -> str:
    """What is made of the pull request, where that is not what it did itself."""
    spec = bundle.spec
    if spec.port is not None:
        known = "" if spec.port.solved else ", no solution known"
        return f"variant {spec.variant.value} ({', '.join(spec.port.origin)} to {spec.port.to}{known}) of a "
    return "" if spec.variant is Variant.FIX else f"variant {spec.variant.value} of a "


@command.command("verify")
@click.argument("task")
@json_option
@click.pass_context
def verify(ctx: click.Context, task: str, as_json: bool) -> None:
    """Check that TASK is whole: records, sources by tree id, reference patch, receipts."""
    from smith.errors import SmithError
    from smith.grade.trial import base_tree, reference_tree

    found = store(ctx)
    bundle = found.load(task)
    faults: list[str] = []
    try:
        found.require_sources(bundle)
        base_tree(found, bundle)
        reference_tree(found, bundle)
    except SmithError as error:
        faults.append(str(error))
    for stored in receipts_of(found.layout, bundle.id, bundle.tree):
        if (stored.receipt.task, stored.receipt.tree) != (bundle.id, bundle.tree):
            faults.append(f"the receipt for {stored.receipt.device} speaks of another bundle")
    if as_json:
        print_json({"id": bundle.id, "tree": bundle.tree, "faults": faults})
    else:
        for fault in faults or [f"{bundle.id} is whole: tree {bundle.tree}"]:
            screen.print(Text(fault), soft_wrap=True)
    ctx.exit(EXIT_NO if faults else 0)


@command.command("open")
@click.argument("task")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.pass_context
def open_(ctx: click.Context, task: str, folder: Path) -> None:
    """Write the source that TASK starts from into FOLDER, to work on by hand."""
    found = store(ctx)
    bundle = found.load(task)
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is no folder", hint="name a new folder")
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty", hint="name a new folder")
    found.require_sources(bundle)
    materialise(found.scratch, bundle.spec.source.tree, folder)
    click.echo(f"{folder}: the source of {bundle.id}; read {bundle.path / 'instruction.md'}")
    click.echo(
        f"then, from a git repository made there: git diff --binary > my.patch; smith grade {bundle.id} my.patch"
    )
