"""``smith panel``."""

from __future__ import annotations

from typing import Literal

import click
from rich.text import Text

from smith.cli.common import json_option, print_json, screen, store
from smith.errors import EXIT_NO, BadInput
from smith.freeze.panels import check_name, load_panel, make_panel, valid_tasks
from smith.freeze.review import notes, review
from smith.records.policy import Policy


@click.group("panel")
def command() -> None:
    """Make, show or check a panel: tasks pinned by tree, with the receipts that count."""


@command.command("new")
@click.argument("name")
@click.argument("tasks", nargs=-1)
@click.option("--valid", is_flag=True, help="Every task that has a valid receipt.")
@click.option("--description", default="", help="What the panel is for.")
@click.option("--replace", is_flag=True, help="Replace a panel of this name; it becomes the next revision.")
@click.option("--split", type=click.Choice(["train", "held_out"]), help="The side of a split that the panel is.")
@click.option(
    "--sanitize/--no-sanitize",
    default=None,
    help="Submissions must be clean under the sanitizer (interpreter) too; kept by --replace.",
)
@click.option(
    "--min-sensitivity",
    type=click.FloatRange(0, 1),
    help="The least share of planted faults that each task's tests must catch; kept by --replace.",
)
@json_option
@click.pass_context
def new(
    ctx: click.Context,
    name: str,
    tasks: tuple[str, ...],
    valid: bool,
    description: str,
    replace: bool,
    split: Literal["train", "held_out"] | None,
    sanitize: bool | None,
    min_sensitivity: float | None,
    as_json: bool,
) -> None:
    """Pin TASKS, each with its valid receipts, as the panel NAME.

    With --min-sensitivity, receipts below it are not pinned, and with --sanitize none whose reference was not seen to
    be clean: --valid leaves such tasks out, naming one is refused.
    """
    found = store(ctx)
    if bool(tasks) == valid:
        raise BadInput("give tasks, or --valid for every task that has a valid receipt")
    check_name(name)
    path = found.layout.panel(name)
    if path.exists() and not replace:
        raise BadInput(f"{path} exists", hint="--replace, or another name")
    before = load_panel(found.layout, name) if path.exists() else None
    asked = {"min_sensitivity": min_sensitivity, "sanitize": sanitize}
    kept = before.policy if before is not None and before.policy is not None else Policy()
    policy: Policy | None = kept.model_copy(update={name: value for name, value in asked.items() if value is not None})
    if policy == Policy():
        policy = None
    pinned = list(dict.fromkeys(tasks)) or valid_tasks(found, policy)
    panel = make_panel(found, name, pinned, description, split=split, replaces=before, policy=policy)
    panel.save(path)
    if as_json:
        print_json(panel.model_dump(mode="json"))
    else:
        click.echo(
            f"{path.relative_to(found.layout.root)}: {len(panel.tasks)} tasks; next: smith eval {name} --agent oracle"
        )


@command.command("show")
@click.argument("name")
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show the panel NAME."""
    panel = load_panel(store(ctx).layout, name)
    if as_json:
        print_json(panel.model_dump(mode="json"))
        return
    screen.print(
        Text(
            f"{panel.name}: {len(panel.tasks)} tasks"
            + (", submissions are sanitized" if panel.sanitize else "")
            + (f". {panel.description}" if panel.description else "")
        )
    )
    if panel.policy is not None and panel.policy.min_sensitivity is not None:
        screen.print(Text(f"  asks that at least {panel.policy.min_sensitivity:.0%} of the planted faults are caught"))
    for task in panel.tasks:
        screen.print(Text(f"  {task.id}  {task.tree[:12]}  {', '.join(task.receipts)}"), soft_wrap=True)


@command.command("check")
@click.argument("names", nargs=-1)
@click.option("--base", metavar="REF", help="Also check what changed since this commit, as for a pull request.")
@click.option("--device", "devices", multiple=True, help="Every task must be valid on it; repeatable.")
@json_option
@click.pass_context
def check(
    ctx: click.Context, names: tuple[str, ...], base: str | None, devices: tuple[str, ...], as_json: bool
) -> None:
    """Check the panels NAMES (default: all): pins, receipts, duplicates, splits, and every bundle's schema.

    One line for each finding; exit status 1 where there are any. Several variants of one pull request in a panel are
    a note and no finding. This is what a data repository's checks run.
    """
    found = store(ctx)
    for name in names:
        load_panel(found.layout, name)
    findings = review(found, base=base, panels=names, devices=devices)
    known = notes(found, names)
    if as_json:
        each = [{"code": f.code, "where": f.where, "message": f.message} for f in findings]
        print_json({"panels": list(names), "findings": each, "faults": [str(f) for f in findings], "notes": known})
    else:
        said = [str(f) for f in findings] or ["every panel is as it should be"]
        for line in [*said, *(f"note: {note}" for note in known)]:
            screen.print(Text(line), soft_wrap=True)
    ctx.exit(EXIT_NO if findings else 0)
