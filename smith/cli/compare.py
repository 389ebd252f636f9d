"""``smith compare``."""

from __future__ import annotations

import click

from smith.cli.common import json_option, layout, print_json, screen
from smith.errors import BadInput
from smith.evaluate.run import load_run
from smith.report.compared import answer, compare_runs, table


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@json_option
@click.pass_context
def command(ctx: click.Context, runs: tuple[str, ...], as_json: bool) -> None:
    """Is the second RUN better than the first? Compare runs of the same tasks, task by task.

    Every further run is compared with the first. A missing attempt has not solved its task. What the figures mean:
    docs/reports.md.
    """
    if len(runs) < 2:
        raise BadInput("smith compare wants two runs or more", hint="see: smith runs")
    found = layout(ctx)
    compared = compare_runs(found, [load_run(found, run) for run in runs])
    if as_json:
        print_json(compared.model_dump(mode="json"))
        return
    screen.print(table(compared))
    for note in compared.notes:
        screen.print(f"note: {note}", markup=False, soft_wrap=True)
    for other in compared.others:
        screen.print(answer(compared, other), markup=False, soft_wrap=True)
