"""``smith report``."""

from __future__ import annotations

import re

import click

from smith.cli.common import json_option, layout
from smith.cli.evaluate import show_report
from smith.errors import BadInput
from smith.evaluate.run import load_run
from smith.report.run_report import make_report

DIMENSIONS = ("kind", "language", "device", "size", "merged")


class Month(click.ParamType[str]):
    """A month or a day, as ISO 8601 has them."""

    name = "month"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?", value):
            self.fail(f"{value!r} is no month or day (2025-06 or 2025-06-30)", param, ctx)
        return value


@click.command("report")
@click.argument("run", default="latest")
@click.option(
    "--cutoff",
    type=Month(),
    metavar="YYYY-MM[-DD]",
    help="When the model's knowledge ends: tasks merged before and from then on are scored apart too.",
)
@click.option("--by", multiple=True, type=click.Choice(DIMENSIONS), help="Also a table of the tasks of each kind, ...")
@json_option
@click.pass_context
def command(ctx: click.Context, run: str, cutoff: str | None, by: tuple[str, ...], as_json: bool) -> None:
    """Report RUN (default: the latest), finished or not. What the figures mean: docs/reports.md."""
    found = layout(ctx)
    if "merged" in by and cutoff is None:
        raise BadInput("--by merged wants --cutoff", hint="--cutoff 2025-06")
    report = make_report(found, load_run(found, run), cutoff=cutoff)
    shown = (*by, *(("merged",) if cutoff and "merged" not in by else ()))
    show_report(report, as_json, by=shown)
