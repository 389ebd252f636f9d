"""``smith export``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from smith.cli.common import json_option, layout, print_json, progress, screen, store
from smith.errors import EXIT_NO, BadInput
from smith.export.swebench import Refused

_ROWS = (".jsonl", ".json", ".parquet")


@click.group("export")
def command() -> None:
    """Write tasks or submissions in the formats of other tools."""


@command.command("swebench")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--panel", help="The tasks of this panel (default: every task with a valid receipt).")
@click.option("--device", default="auto", show_default=True, help="Whose receipts give the expectations.")
@click.option("--dataset", default="smith/kernels", show_default=True, help="Name in a task repository.")
@json_option
@click.pass_context
def swebench(ctx: click.Context, out: Path, panel: str | None, device: str, dataset: str, as_json: bool) -> None:
    """Write SWE-bench rows to OUT.

    A file .jsonl, .json or .parquet holds rows. Any other OUT is a folder, which becomes a task repository, from which
    the package swebench 5 builds images and datasets.
    """
    from smith.export.rows import write_rows
    from smith.export.swebench import Exported, export
    from smith.export.task_repository import write_task_repository

    found = store(ctx)
    made: list[Exported] = []
    refused: list[Refused] = []
    with progress("exporting", None) as step:
        for one in export(found, panel, device):
            if isinstance(one, Exported):
                made.append(one)
            else:
                refused.append(one)
            step(None, 1)
    if made and out.suffix in _ROWS:
        write_rows(out, [one.row for one in made])
    elif made:
        write_task_repository(found, out.absolute(), made, dataset)
    told = [{"instance_id": e.row.instance_id, "device": e.row.columns["smith_device"]} for e in made]
    if as_json:
        print_json({"out": str(out), "rows": told, "refused": refusals(refused)})
    else:
        show(refused)
        what = "rows" if out.suffix in _ROWS else "tasks"
        screen.print(Text(f"{out}: {len(made)} {what}" if made else "nothing was written"), soft_wrap=True)
    ctx.exit(0 if made else EXIT_NO)


@command.command("predictions")
@click.argument("run")
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--attempt", type=click.IntRange(min=1), default=1, show_default=True, help="Which attempt of each task.")
@click.option("--model", default="", help="model_name_or_path (default: the run's model, else its agent).")
@json_option
@click.pass_context
def predictions(ctx: click.Context, run: str, out: Path, attempt: int, model: str, as_json: bool) -> None:
    """Write the submissions of RUN as SWE-bench predictions to OUT, .jsonl or .json."""
    from smith.evaluate.run import load_run
    from smith.export.predictions import of_run, write_predictions

    if out.suffix not in (".jsonl", ".json"):
        raise BadInput(f"{out}: of what format?", hint="name it .jsonl or .json")
    found = store(ctx)
    results = list(of_run(found, load_run(found.layout, run), attempt=attempt, model=model))
    made = [one for one in results if not isinstance(one, Refused)]
    refused = [one for one in results if isinstance(one, Refused)]
    if made:
        write_predictions(out, made)
    if as_json:
        print_json({"out": str(out), "predictions": len(made), "refused": refusals(refused)})
    else:
        show(refused)
        screen.print(Text(f"{out}: {len(made)} predictions" if made else "nothing was written"), soft_wrap=True)
    ctx.exit(0 if made else EXIT_NO)


@command.command("harbor")
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--panel", help="The tasks of this panel (default: every task with a valid receipt).")
@click.option("--device", default="auto", show_default=True, help="Whose receipts give the expectations.")
@click.option("--base-image", default="", help="Start images from this (default: the receipt's Python).")
@click.option("--index", default="", help="A further package index for images, such as one that has builds of torch.")
@json_option
@click.pass_context
def harbor(
    ctx: click.Context, out: Path, panel: str | None, device: str, base_image: str, index: str, as_json: bool
) -> None:
    """Write a Harbor dataset into the folder OUT, each task with a verifier that is smith's own grader."""
    from smith.export.harbor import export
    from smith.freeze.panels import load_panel, make_panel, valid_tasks

    found = store(ctx)
    chosen = load_panel(found.layout, panel) if panel else make_panel(found, "tasks", valid_tasks(found))
    with progress("exporting", len(chosen.tasks)) as step:
        made = export(
            found, chosen, out, device=device, base_image=base_image, index=index, step=lambda text: step(text, 1)
        )
    if as_json:
        told = [{"task": e.task, "folder": e.name, "device": e.device, "digest": e.digest} for e in made]
        print_json({"out": str(out), "tasks": told})
    else:
        screen.print(Text(f"{out}: {len(made)} tasks; harbor run -p {out} -a oracle -n 1"), soft_wrap=True)


@command.command("skills")
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option("--operator", default="", help="Only this class of operators.")
@json_option
@click.pass_context
def skills(ctx: click.Context, out: Path, operator: str, as_json: bool) -> None:
    """Write every active card of the knowledge base as OUT/<name>/SKILL.md."""
    from smith.knowledge.index import open_index
    from smith.knowledge.render import write_skills

    with open_index(layout(ctx)) as index:
        cards = [k for k in index.every() if operator in ("", k.file.card.applies_to.operator)]
    written = write_skills(cards, out)
    if as_json:
        print_json({"out": str(out), "skills": [path.parent.name for path in written]})
    else:
        screen.print(Text(f"{out}: {len(written)} skills" if written else "nothing was written"), soft_wrap=True)
    ctx.exit(0 if written else EXIT_NO)


def show(refused: list[Refused]) -> None:
    """A line for each thing that has no other form."""
    for one in refused:
        line = f"refused  {one.id}  {one.reason}"
        # What was refused may hold anything: control characters, half a character.
        safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
        screen.print(Text(safe), soft_wrap=True)


def refusals(refused: list[Refused]) -> list[dict[str, str]]:
    """The same for ``--json``."""
    return [{"id": one.id, "reason": one.reason.code, "detail": one.reason.detail} for one in refused]
