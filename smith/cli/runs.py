"""``smith runs``."""

from __future__ import annotations

import click
from rich import box
from rich.table import Table

from smith.cli.common import json_option, layout, print_json, screen
from smith.evaluate.run import load_run, run_ids
from smith.report.run_report import make_report, percent


@click.command("runs")
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List runs, oldest first."""
    found = layout(ctx)
    reports = [make_report(found, load_run(found, run)) for run in run_ids(found)]
    if as_json:
        print_json(
            {
                "runs": [
                    {
                        "run": r.run,
                        "panel": r.panel,
                        "agent": r.agent,
                        "model": r.model,
                        "complete": r.complete,
                        "solved": r.scores.solved.count,
                        "attempts": r.scores.solved.total,
                    }
                    for r in reports
                ]
            }
        )
        return
    if not reports:
        click.echo("no runs yet; start one with: smith eval PANEL --agent oracle")
        return
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("run", "agent", "state", "solved"):
        shown.add_column(name, overflow="fold")
    for r in reports:
        shown.add_row(r.run, r.agent, "done" if r.complete else "unfinished", percent(r.scores.solved))
    screen.print(shown)
