"""``smith report``."""

from __future__ import annotations

import click

from smith.cli.common import json_option, layout
from smith.cli.evaluate import show_report
from smith.evaluate.run import load_run
from smith.report.run_report import make_report


@click.command("report")
@click.argument("run", default="latest")
@json_option
@click.pass_context
def command(ctx: click.Context, run: str, as_json: bool) -> None:
    """Report RUN (default: the latest), finished or not."""
    found = layout(ctx)
    show_report(make_report(found, load_run(found, run)), as_json)
