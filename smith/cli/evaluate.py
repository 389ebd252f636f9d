"""``smith eval``."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

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
    targets_option,
)
from smith.errors import BadInput
from smith.evaluate.agents import agent_names
from smith.evaluate.agents.commandline import agent_file
from smith.evaluate.agents.settings import SAMPLING
from smith.evaluate.run import Shown, execute, start_run
from smith.freeze.bundle import Store
from smith.freeze.panels import load_panel, pinned_receipt
from smith.knowledge.show import cards_for
from smith.records.attempt import RunConfig
from smith.records.panel import Panel
from smith.report.run_report import RunReport, figures, headline, make_report, strata, table
from smith.validate.gate import parse_targets


@click.command("eval")
@click.argument("panel")
@click.option("--agent", required=True, help=f"One of: {', '.join(agent_names())}; or FILE.toml, see docs/agents.md.")
@click.option("--model", help="The model that the agent asks, as its endpoint calls it.")
@click.option(
    "--endpoint", help="Address of the endpoint [default: OPENAI_BASE_URL or ANTHROPIC_BASE_URL, else the maker's]."
)
@click.option("--provider", help="For prices and rates, where one model's name means several.")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the endpoint's key [default: the variable OPENAI_API_KEY or ANTHROPIC_API_KEY].",
)
@click.option("--max-output-tokens", type=click.IntRange(256, 1_000_000), help="Cap of one reply [default: 32000].")
@click.option("--timeout", type=click.FloatRange(1, 7 * 86400), help="Seconds of an attempt's work [default: 3600].")
@click.option("--steps", type=click.IntRange(1, 10_000), help="For the agent tools: replies at most [default: 120].")
@click.option(
    "--context-tokens",
    type=click.IntRange(4000, 10_000_000),
    help="For the agent tools: tokens of a prompt at most [default: 120000].",
)
@click.option(
    "--sampling",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"For the agent tools, else the model's own: {', '.join(SAMPLING)}.",
)
@click.option("--program-path", help="For command-line agents: where programs are looked up [default: PATH].")
@click.option(
    "--patches", type=click.Path(path_type=Path, file_okay=False), help="For the agent patch: <task>.patch files."
)
@click.option("--replay", metavar="RUN", help="For the agent replay: the run whose model's answers are given again.")
@click.option(
    "--knowledge",
    type=click.Choice(["off", "on", "ab"]),
    default="off",
    show_default=True,
    help="Show cards of the knowledge base: to no attempt, to all, or to one of every two, drawn (docs/knowledge.md).",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Of the arms of --knowledge ab [default: drawn].")
@click.option("--attempts", type=click.IntRange(min=1), default=1, show_default=True, help="Attempts at each task.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Attempts at a time.")
@click.option("--budget-usd", type=Dollars(), help="The most that the run may spend.")
@click.option("--attempt-usd", type=Dollars(), help="The most that each attempt may spend.")
@targets_option
@device_option
@sandbox_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    panel: str,
    agent: str,
    model: str | None,
    endpoint: str | None,
    provider: str | None,
    key_file: Path | None,
    max_output_tokens: int | None,
    timeout: float | None,
    steps: int | None,
    context_tokens: int | None,
    sampling: tuple[str, ...],
    program_path: str | None,
    patches: Path | None,
    replay: str | None,
    knowledge: str,
    seed: int | None,
    attempts: int,
    jobs: int,
    budget_usd: int | None,
    attempt_usd: int | None,
    targets: str | None,
    device: str,
    sandbox: str,
    as_json: bool,
) -> None:
    """Run an agent over every task of PANEL and grade what it leaves.

    oracle, nop and patch ask no model; replay works once more as the agent of an earlier run, on the answers that its
    model gave then, and costs nothing. Every other agent works in the sandbox without network; its calls pass a
    gateway that reserves each in the ledger before it leaves (smith budget), and the key stays outside.
    """
    found = store(ctx)
    given: dict[str, object] = {
        "patches": patches and patches.absolute(),
        "replay": replay,
        "endpoint": endpoint,
        "provider": provider,
        "key_file": key_file and key_file.absolute(),
        "max_output_tokens": max_output_tokens,
        "steps": steps,
        "context_tokens": context_tokens,
        "program_path": program_path,
    }
    options = {name: str(value) for name, value in given.items() if value is not None}
    options |= _sampling(sampling)
    for name, only in _ONLY.items():
        if agent != only and any(option.split(".")[0] == name for option in options):
            raise BadInput(f"--{name.replace('_', '-')} is for the agent {only!r}, not for {agent!r}")
    if agent.endswith(".toml"):
        options["agent_file"] = str(Path(agent).absolute())
        agent = agent_file(Path(agent)).name
    compiled_for = parse_targets(targets)
    sandboxes.make(sandbox)  # what cannot work is said before anything is written
    pinned = load_panel(found.layout, panel)
    devices = machine_devices()
    for name in sorted({pinned_receipt(found, task, device).receipt.device for task in pinned.tasks}):
        devices.require(name)
    shown = _shown(found, pinned, knowledge, seed, attempts, device)
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
        model=model,
        timeout_s=timeout,
        targets=compiled_for,
        shown=shown,
    )
    click.echo(f"run {config.run}", err=True)
    show_report(work_on(found, config), as_json)
    if knowledge == "ab" and not as_json:
        screen.print(f"smith knowledge uplift {config.run}", markup=False, style="dim")


def _shown(found: Store, panel: Panel, knowledge: str, seed: int | None, attempts: int, device: str) -> Shown | None:
    """The cards of a run that shows any. Raises :class:`BadInput` for options that do not go together."""
    if seed is not None and knowledge != "ab":
        raise BadInput("--seed draws the arms of --knowledge ab, and of nothing else")
    if knowledge == "off":
        return None
    if knowledge == "ab" and attempts % 2:
        raise BadInput("--knowledge ab compares attempts two by two", hint=f"--attempts {attempts + 1}")
    mode: Literal["on", "ab"] = "on" if knowledge == "on" else "ab"
    drawn = secrets.randbelow(2**31) if seed is None else seed
    return Shown(cards_for(found, panel, device), mode, drawn)


_ONLY = {"patches": "patch", "replay": "replay", "steps": "tools", "context_tokens": "tools", "sampling": "tools"}
"""Options that mean something to one agent only."""


def _sampling(given: tuple[str, ...]) -> dict[str, str]:
    parted = [text.partition("=") for text in given]
    wrong = next((key for key, sign, value in parted if not (key and sign and value)), None)
    if wrong is not None:
        raise BadInput(f"--sampling {wrong}: is no setting", hint="e.g. --sampling temperature=0.2")
    return {f"sampling.{key}": value for key, _, value in parted}


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
