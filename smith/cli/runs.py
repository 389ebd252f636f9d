"""``smith runs``."""

from __future__ import annotations

import click
from rich import box
from rich.table import Table
from rich.text import Text

from smith.cli.common import json_option, layout, print_json, screen
from smith.errors import EXIT_NO, RecordError
from smith.evaluate.run import check_seals, load_run, progress_of, run_ids
from smith.paths import Layout
from smith.report.run_report import RunReport, make_report, percent


@click.command("runs")
@click.option(
    "--check", "run", metavar="RUN", help="See whether the evidence of RUN is as it was sealed, and list nothing."
)
@json_option
@click.pass_context
def command(ctx: click.Context, run: str | None, as_json: bool) -> None:
    """List runs, oldest first. A run whose record is broken is listed as such.

    With --check every file of the run's finished attempts is held against its seal: exit status 1 where any differs.
    """
    found = layout(ctx)
    if run is not None:
        ctx.exit(_check(found, run, as_json))
    reports: dict[str, RunReport | str] = {}
    for run in run_ids(found):
        try:
            reports[run] = make_report(found, load_run(found, run))
        except RecordError as error:
            reports[run] = str(error)
    running = progress_of(found)
    if as_json:
        print_json({"runs": [_line(run, report, running.get(run, 0)) for run, report in reports.items()]})
        return
    if not reports:
        click.echo("no runs yet; start one with: smith eval PANEL --agent oracle")
        return
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("run", "agent", "state", "solved"):
        shown.add_column(name, overflow="fold")
    for run, report in reports.items():
        if isinstance(report, str):
            shown.add_row(run, "-", Text("broken", style="red"), Text(report))
        else:
            busy = f"{running[run]} under way" if running.get(run) else "unfinished"
            shown.add_row(run, report.agent, "done" if report.complete else busy, percent(report.scores.solved))
    screen.print(shown)


def _check(found: Layout, run: str, as_json: bool) -> int:
    config = load_run(found, run)
    seals = check_seals(found, config)
    if as_json:
        said = {"sealed": seals.sealed, "unsealed": list(seals.unsealed), "altered": seals.altered}
        print_json({"run": config.run, **said})
    else:
        for name, faults in seals.altered.items():
            for fault in faults:
                click.echo(f"{name}/{fault}")
        unsealed = f", {len(seals.unsealed)} without a seal" if seals.unsealed else ""
        click.echo(f"{config.run}: {seals.sealed} as sealed, {len(seals.altered)} altered{unsealed}")
    return EXIT_NO if seals.altered else 0


def _line(run: str, report: RunReport | str, running: int) -> dict[str, object]:
    if isinstance(report, str):
        return {"run": run, "error": report}
    return {
        "run": run,
        "panel": report.panel,
        "agent": report.agent,
        "model": report.model,
        "complete": report.complete,
        "running": running,
        "solved": report.scores.solved.count,
        "attempts": report.scores.solved.total,
    }
