"""``smith eval``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from smith import sandbox as sandboxes
from smith.cli.amounts import Dollars
from smith.cli.common import (
    device_option,
    json_option,
    machine_devices,
    print_json,
    progress,
    sandbox_option,
    screen,
    store,
)
from smith.errors import BadInput
from smith.evaluate.agents import NAMES
from smith.evaluate.run import execute, start_run
from smith.freeze.bundle import Store
from smith.freeze.panels import load_panel, pinned_receipt
from smith.records.attempt import RunConfig
from smith.report.run_report import RunReport, figures, headline, make_report, strata, table


@click.command("eval")
@click.argument("panel")
@click.option("--agent", required=True, help=f"One of: {', '.join(NAMES)}.")
@click.option(
    "--patches", type=click.Path(path_type=Path, file_okay=False), help="For the agent patch: <task>.patch files."
)
@click.option("--attempts", type=click.IntRange(min=1), default=1, show_default=True, help="Attempts at each task.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Attempts at a time.")
@click.option("--budget-usd", type=Dollars(), help="The most that the run may spend.")
@click.option("--attempt-usd", type=Dollars(), help="The most that each attempt may spend.")
@device_option
@sandbox_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    panel: str,
    agent: str,
    patches: Path | None,
    attempts: int,
    jobs: int,
    budget_usd: int | None,
    attempt_usd: int | None,
    device: str,
    sandbox: str,
    as_json: bool,
) -> None:
    """Run an agent over every task of PANEL and grade what it leaves.

    The built-in agents call no model, so they spend no money; what they took of time is in the ledger (smith budget).
    """
    found = store(ctx)
    options = {"patches": str(patches.absolute())} if patches is not None else {}
    if patches is not None and agent != "patch":
        raise BadInput(f"--patches is for the agent 'patch', not for {agent!r}")
    sandboxes.make(sandbox)  # what cannot work is said before anything is written
    pinned = load_panel(found.layout, panel)
    devices = machine_devices()
    for name in sorted({pinned_receipt(found, task, device).receipt.device for task in pinned.tasks}):
        devices.require(name)
    config = start_run(
        found,
        pinned,
        agent=agent,
        options=options,
        attempts=attempts,
        jobs=jobs,
        device=device,
        sandbox=sandbox,
        budget_micro_usd=budget_usd,
        attempt_micro_usd=attempt_usd,
    )
    click.echo(f"run {config.run}", err=True)
    show_report(work_on(found, config), as_json)


def work_on(found: Store, config: RunConfig) -> RunReport:
    """Do what is left of a run, with a progress bar, and report it."""
    with progress(f"{config.agent} on {config.panel}", len(config.tasks) * config.attempts) as step:
        execute(found, config, sandboxes.make(config.sandbox), step, machine_devices())
    return make_report(found.layout, config)


def show_report(report: RunReport, as_json: bool, *, by: Sequence[str] = ()) -> None:
    """Print a report as JSON or as tables; ``by`` names dimensions to divide the tasks by."""
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    screen.print(table(report))
    for dimension in by:
        screen.print(strata(report, dimension))
    for note in report.notes:
        screen.print(f"note: {note}", markup=False, soft_wrap=True)
    for line in figures(report):
        screen.print(line, markup=False, soft_wrap=True)
    screen.print(headline(report), markup=False)
    screen.print(f"smith report {report.run}", markup=False, style="dim")
