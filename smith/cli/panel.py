"""``smith panel``."""

from __future__ import annotations

import click
from rich.text import Text

from smith.cli.common import json_option, print_json, screen, store
from smith.errors import EXIT_NO, BadInput
from smith.freeze.panels import check_name, check_panel, load_panel, make_panel, valid_tasks


@click.group("panel")
def command() -> None:
    """Make, show or check a panel: tasks pinned by tree, with the receipts that count."""


@command.command("new")
@click.argument("name")
@click.argument("tasks", nargs=-1)
@click.option("--valid", is_flag=True, help="Every task that has a valid receipt.")
@click.option("--description", default="", help="What the panel is for.")
@click.option("--replace", is_flag=True, help="Replace a panel of this name.")
@json_option
@click.pass_context
def new(
    ctx: click.Context,
    name: str,
    tasks: tuple[str, ...],
    valid: bool,
    description: str,
    replace: bool,
    as_json: bool,
) -> None:
    """Pin TASKS, each with its valid receipts, as the panel NAME."""
    found = store(ctx)
    if bool(tasks) == valid:
        raise BadInput("give tasks, or --valid for every task that has a valid receipt")
    check_name(name)
    path = found.layout.panel(name)
    if path.exists() and not replace:
        raise BadInput(f"{path} exists", hint="--replace, or another name")
    panel = make_panel(found, name, list(dict.fromkeys(tasks)) or valid_tasks(found), description)
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
        Text(f"{panel.name}: {len(panel.tasks)} tasks" + (f". {panel.description}" if panel.description else ""))
    )
    for task in panel.tasks:
        screen.print(Text(f"  {task.id}  {task.tree[:12]}  {', '.join(task.receipts)}"), soft_wrap=True)


@command.command("check")
@click.argument("name")
@json_option
@click.pass_context
def check(ctx: click.Context, name: str, as_json: bool) -> None:
    """Check that every task and receipt of the panel NAME is the one pinned."""
    found = store(ctx)
    faults = check_panel(found, load_panel(found.layout, name))
    if as_json:
        print_json({"panel": name, "faults": faults})
    else:
        for fault in faults or [f"{name}: every task and receipt is the one pinned"]:
            screen.print(Text(fault), soft_wrap=True)
    ctx.exit(EXIT_NO if faults else 0)
