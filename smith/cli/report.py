"""``smith report``."""

from __future__ import annotations

import re
from pathlib import Path

import click

from smith.cli.common import console, json_option, layout
from smith.cli.evaluate import show_report
from smith.errors import BadInput
from smith.evaluate.run import load_run
from smith.paths import write_atomically
from smith.report import flat
from smith.report.dataset_files import write_dataset
from smith.report.rows import save
from smith.report.run_report import read

DIMENSIONS = ("kind", "language", "device", "size", "merged")


OUT = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)


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
@click.option("--html", type=OUT, help="Also write a page that needs no network and runs no script.")
@click.option("--markdown", type=OUT, help="Also write tables for a pull request.")
@click.option("--csv", "as_csv", type=OUT, help="Also write a line for each attempt.")
@click.option("--sqlite", type=OUT, help="Also write attempts, tests and figures as a database (for Datasette).")
@click.option(
    "--parquet", type=FOLDER, help="Also write a data set for the Hugging Face Hub, with a card (needs pyarrow)."
)
@click.option("--jsonl", type=FOLDER, help="The same data set with files of JSON lines.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    run: str,
    cutoff: str | None,
    by: tuple[str, ...],
    html: Path | None,
    markdown: Path | None,
    as_csv: Path | None,
    sqlite: Path | None,
    parquet: Path | None,
    jsonl: Path | None,
    as_json: bool,
) -> None:
    """Report RUN (default: the latest), finished or not. What the figures mean: docs/reports.md."""
    found = layout(ctx)
    if "merged" in by and cutoff is None:
        raise BadInput("--by merged wants --cutoff", hint="--cutoff 2025-06")
    config = load_run(found, run)
    evidence = read(found, config, cutoff=cutoff)
    if html is not None:
        # Templates and plots take a second to import.
        from smith.report.html.page import render

        write_atomically(html, render(found, config, evidence).encode("utf-8", "replace"))
    if markdown is not None:
        write_atomically(markdown, flat.as_markdown(evidence.report, evidence.rows).encode())
    if as_csv is not None:
        write_atomically(as_csv, flat.as_csv(evidence.rows).encode())
    if sqlite is not None:
        save(evidence.rows, sqlite)
    if parquet is not None and parquet == jsonl:
        raise BadInput("--parquet and --jsonl want a folder each", hint="one card describes one form")
    if parquet is not None:
        write_dataset(parquet, found, config, evidence, "parquet")
    if jsonl is not None:
        write_dataset(jsonl, found, config, evidence, "jsonl")
    shown = (*by, *(("merged",) if cutoff and "merged" not in by else ()))
    show_report(evidence.report, as_json, by=shown)
    for path in filter(None, (html, markdown, as_csv, sqlite, parquet, jsonl)):
        console.print(f"wrote {path}", markup=False)
