"""``smith schema``."""

from __future__ import annotations

import click

from smith.cli.common import print_json
from smith.errors import BadInput
from smith.leaderboard.board import Leaderboard
from smith.records.agent_file import AgentFile
from smith.records.agent_run import AgentRun
from smith.records.attempt import Attempt, RunConfig
from smith.records.authoring import Answer
from smith.records.base import Record
from smith.records.candidate import Candidate
from smith.records.card import Card
from smith.records.config import Config
from smith.records.grade import Grade
from smith.records.leaderboard import Figures, Manifest
from smith.records.lineages import Lineages
from smith.records.panel import Panel
from smith.records.receipt import Receipt
from smith.records.recipe import Recipe
from smith.records.seal import Seal
from smith.records.sealed import Evidence
from smith.records.shown import RunCards
from smith.records.task import Probes, Selection, TaskFile
from smith.records.workload import Workload
from smith.report.run_report import RunReport

RECORDS: dict[str, type[Record]] = {
    "config": Config,
    "candidate": Candidate,
    "recipe": Recipe,
    "task": TaskFile,
    "selection": Selection,
    "receipt": Receipt,
    "panel": Panel,
    "lineages": Lineages,
    "run": RunConfig,
    "attempt": Attempt,
    "agent": AgentFile,
    "agent-run": AgentRun,
    "grade": Grade,
    "seal": Seal,
    "leaderboard-manifest": Manifest,
    "leaderboard-figures": Figures,
    "leaderboard": Leaderboard,
    "report": RunReport,
    "answer": Answer,
    "probes": Probes,
    "workload": Workload,
    "card": Card,
    "evidence": Evidence,
    "run-cards": RunCards,
}


@click.command("schema")
@click.argument("record", required=False)
def command(record: str | None) -> None:
    """Print the JSON Schema of RECORD, or list the records."""
    if record is None:
        for name, kind in RECORDS.items():
            first = (kind.__doc__ or "").strip().splitlines()[0]
            click.echo(f"{name:10} {first}")
        return
    if record not in RECORDS:
        raise BadInput(f"no record is called {record!r}", hint=f"one of: {', '.join(RECORDS)}")
    schema = RECORDS[record].model_json_schema(mode="validation")
    print_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
