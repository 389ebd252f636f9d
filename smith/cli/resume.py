"""``smith resume``."""

from __future__ import annotations

import click

from smith.cli.common import json_option, store
from smith.cli.evaluate import show_report, work_on
from smith.evaluate.run import load_run


@click.command("resume")
@click.argument("run", default="latest")
@json_option
@click.pass_context
def command(ctx: click.Context, run: str, as_json: bool) -> None:
    """Go on with RUN (default: the latest). Finished attempts stay as they are."""
    found = store(ctx)
    show_report(work_on(found, load_run(found.layout, run)), as_json)
