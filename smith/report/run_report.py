"""The report of a run: one document, printed as JSON or as a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlite_utils
from rich import box
from rich.table import Table
from rich.text import Text

from smith.evaluate.run import AttemptState, states
from smith.evaluate.spending import balance_of
from smith.paths import Layout
from smith.records.attempt import RunConfig
from smith.records.base import Field, Record
from smith.records.compiled import TargetReport
from smith.report.evidence import tasks_of
from smith.report.rows import VIEW, rows_of
from smith.score.metrics import Scores, scores
from smith.score.shares import Mean, Share
from smith.score.speedups import Ratio, SpeedScores
from smith.score.trials import Task


class AttemptLine(Record):
    """One attempt in a report. ``verdict`` is null where the attempt is missing."""

    task: str
    attempt: int
    verdict: str | None
    reasons: tuple[str, ...] = ()
    ended: str | None
    usd: float
    tokens: int
    seconds: float
    speedup: float | None = None
    targets: dict[str, TargetReport] = Field(default={}, exclude_if=lambda targets: not targets)
    """What compiling the submission for a GPU gave, where it was asked for."""


class BudgetLine(Record):
    """Money in dollars; ``limit_usd`` is null where no limit was set."""

    limit_usd: float | None
    spent_usd: float
    held_usd: float


class RunReport(Record):
    """What ``smith eval`` and ``smith report`` print."""

    run: str
    panel: str
    agent: str
    model: str | None
    complete: bool
    attempts: tuple[AttemptLine, ...]
    scores: Scores
    budget: BudgetLine
    notes: tuple[str, ...] = ()
    """What the grades say besides, each once."""


def make_report(layout: Layout, config: RunConfig, *, cutoff: str | None = None) -> RunReport:
    """The report of a run as its evidence stands now; for ``cutoff`` see :func:`smith.report.evidence.tasks_of`."""
    return read(layout, config, cutoff=cutoff).report


@dataclass(frozen=True)
class Read:
    """What reports are made of: the document, the rows, and the evidence behind both."""

    report: RunReport
    rows: sqlite_utils.Database
    states: Sequence[AttemptState]
    tasks: Sequence[Task]


def read(layout: Layout, config: RunConfig, *, cutoff: str | None = None) -> Read:
    """Read a run's evidence once, for every form of report."""
    found = states(layout, config)
    tasks = tasks_of(layout, config, found, cutoff=cutoff)
    scored = scores(tasks)
    rows = rows_of(config, found, tasks, scored)
    shown = zip(rows.query(f"SELECT * FROM {VIEW}"), found, strict=True)
    lines = tuple(_line(row, state.grade.targets if state.grade is not None else {}) for row, state in shown)
    report = RunReport(
        run=config.run,
        panel=config.panel,
        agent=config.agent,
        model=config.model,
        complete=all(line.verdict is not None for line in lines),
        attempts=lines,
        scores=scored,
        budget=_budget(layout, config),
        notes=tuple(dict.fromkeys(note for s in found if s.grade for note in s.grade.notes)),
    )
    return Read(report, rows, found, tasks)


def _budget(layout: Layout, config: RunConfig) -> BudgetLine:
    """As the ledger has it. A run that is not there has spent nothing: before the ledger no agent cost money."""
    stands = balance_of(layout, config)
    limit = config.budget_micro_usd if stands is None else stands.limit.usd_micros
    return BudgetLine(
        limit_usd=None if limit is None else limit / 1e6,
        spent_usd=0.0 if stands is None else stands.spent.usd_micros / 1e6,
        held_usd=0.0 if stands is None else stands.held.usd_micros / 1e6,
    )


def _line(row: dict[str, Any], targets: dict[str, TargetReport]) -> AttemptLine:
    return AttemptLine(
        task=row["task"],
        attempt=row["attempt"],
        verdict=row["verdict"],
        reasons=tuple(json.loads(row["reasons"])),
        ended=row["ended"],
        usd=row["usd"],
        tokens=row["tokens"],
        seconds=row["seconds"],
        speedup=row["speedup"],
        targets=targets,
    )


_STYLES = {"solved": "green", "failed": "red", "tampered": "bold red", "invalid_patch": "red", "timeout": "yellow"}


def table(report: RunReport) -> Table:
    """The attempts as a table for the terminal. Text of others is never read as markup."""
    title = f"{report.agent} on {report.panel}" + (f" with {report.model}" if report.model else "")
    shown = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    shown.add_column("task", overflow="fold")
    shown.add_column("verdict")
    shown.add_column("speed-up", justify="right")
    priced = report.model is not None
    if priced:
        shown.add_column("ended")
        shown.add_column("spent", justify="right")
        shown.add_column("tokens", justify="right")
    shown.add_column("seconds", justify="right")
    shown.add_column("why", overflow="ellipsis", no_wrap=True, max_width=60)
    for line in report.attempts:
        name = line.task if line.attempt == 1 else f"{line.task} #{line.attempt}"
        verdict = line.verdict or "missing"
        shown.add_row(
            Text(name),
            Text(verdict, style=_STYLES.get(verdict, "")),
            Text(f"{line.speedup:.2f}x" if line.speedup is not None else "-"),
            *([Text(line.ended or "-"), Text(f"${line.usd:.4f}"), Text(f"{line.tokens:,}")] if priced else []),
            Text(f"{line.seconds:.1f}"),
            Text(line.reasons[0] if line.reasons else ""),
        )
    return shown


def headline(report: RunReport) -> str:
    """One line that says it all."""
    words = [f"solved {percent(report.scores.solved)}"]
    if report.scores.missing:
        words.append(f"{report.scores.missing} missing")
    if report.scores.speedup_geomean is not None:
        words.append(f"speed-up {report.scores.speedup_geomean:.2f}x over {report.scores.speedup_tasks} timed")
    spent, limit = report.budget.spent_usd, report.budget.limit_usd
    cents = f"${spent:.2f}" if report.model is None else f"${spent:.4f}"
    words.append(f"spent {cents}" + ("" if limit is None else f" of ${limit:.2f}"))
    if report.model is not None:
        words.append(f"{sum(line.tokens for line in report.attempts):,} tokens")
    if report.budget.held_usd:
        words.append(f"${report.budget.held_usd:.4f} held (smith budget show eval/{report.run})")
    return ", ".join(words)


def figures(report: RunReport) -> Iterator[str]:
    """Lines for what the headline has no room for; only what says more than it."""
    scores = report.scores
    if len(scores.pass_at) > 1:
        yield "  ".join(f"pass@{k} {of_tasks(mean)}" for k, mean in scores.pass_at.items())
    if scores.speed is not None:
        yield from _speed(scores.speed)
    costs = scores.costs
    if costs is not None and costs.usd_per_solved_task is not None and (costs.usd or costs.tokens):
        yield f"a solved task costs ${costs.usd_per_solved_task:.2f}, {costs.tokens_per_solved_task:,.0f} tokens"


def _speed(speed: SpeedScores) -> Iterator[str]:
    fast = ", ".join(f"{p}x {mean.mean:.0%}" for p, mean in speed.fast_p.items())
    yield f"of {speed.timed} timed tasks, correct and faster than: {fast}; as the reference {of_tasks(speed.reached)}"
    words = [f"{ratio(speed.geomean_all)} with 1 for what was not solved"]
    if speed.geomean is not None:
        words.append(f"{ratio(speed.geomean)} where solved, {speed.worst:.2f}x at worst")
    if speed.expert_harmonic is not None:
        words.append(f"{speed.expert_harmonic:.2f} of the reference's (harmonic mean)")
    yield f"speed-up {', '.join(words)}"


def strata(report: RunReport, dimension: str) -> Table:
    """The tasks divided by one dimension."""
    shown = Table(title=f"by {dimension}", box=box.SIMPLE_HEAD, title_justify="left")
    for name in (dimension, "tasks", "pass@1", "interval"):
        shown.add_column(name, justify="left" if name == dimension else "right")
    for value, stratum in report.scores.strata.get(dimension, {}).items():
        mean = stratum.solved
        shown.add_row(
            Text(value), str(stratum.tasks), f"{mean.mean:.0%}", f"{mean.low * 100:.0f} to {mean.high * 100:.0f} %"
        )
    return shown


def of_tasks(mean: Mean) -> str:
    """``40 % (27 to 55)``."""
    return f"{mean.mean * 100:.0f} % ({mean.low * 100:.0f} to {mean.high * 100:.0f})"


def ratio(found: Ratio) -> str:
    """``1.80x (1.42 to 2.31)``."""
    if found.low is None or found.high is None:
        return f"{found.ratio:.2f}x (one task)"
    return f"{found.ratio:.2f}x ({found.low:.2f} to {found.high:.2f})"


def percent(share: Share) -> str:
    """``8/10 (80 %, interval 49 to 94 %)``."""
    return (
        f"{share.count}/{share.total} ({share.share:.0%}, interval {share.low * 100:.0f} to {share.high * 100:.0f} %)"
    ).replace("%,", " %,", 1)
