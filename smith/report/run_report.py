"""The report of a run: one document, printed as JSON or as a table."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from smith.evaluate.run import AttemptState, states
from smith.evaluate.spending import balance_of
from smith.paths import Layout
from smith.records.attempt import RunConfig
from smith.records.base import Record
from smith.score.metrics import Scores, Share, scores


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


def make_report(layout: Layout, config: RunConfig) -> RunReport:
    """The report of a run as its evidence stands now."""
    found = states(layout, config)
    by_task = [[s.grade for s in found if s.task == t.id] for t in config.tasks]
    return RunReport(
        run=config.run,
        panel=config.panel,
        agent=config.agent,
        model=config.model,
        complete=all(s.grade is not None for s in found),
        attempts=tuple(_line(s) for s in found),
        scores=scores(by_task),
        budget=_budget(layout, config),
        notes=tuple(dict.fromkeys(note for s in found if s.grade for note in s.grade.notes)),
    )


def _budget(layout: Layout, config: RunConfig) -> BudgetLine:
    """As the ledger has it. A run that is not there has spent nothing: before the ledger no agent cost money."""
    stands = balance_of(layout, config)
    limit = config.budget_micro_usd if stands is None else stands.limit.usd_micros
    return BudgetLine(
        limit_usd=None if limit is None else limit / 1e6,
        spent_usd=0.0 if stands is None else stands.spent.usd_micros / 1e6,
        held_usd=0.0 if stands is None else stands.held.usd_micros / 1e6,
    )


def _line(state: AttemptState) -> AttemptLine:
    attempt, graded = state.attempt, state.grade
    return AttemptLine(
        task=state.task,
        attempt=state.number,
        verdict=graded.verdict.value if graded else None,
        reasons=tuple(str(r) for r in graded.reasons) if graded else (),
        ended=attempt.ended.value if attempt else None,
        usd=attempt.micro_usd / 1e6 if attempt else 0.0,
        tokens=attempt.input_tokens + attempt.output_tokens if attempt else 0,
        seconds=round((attempt.seconds if attempt else 0.0) + (graded.seconds if graded else 0.0), 2),
        speedup=graded.speedup.geomean if graded and graded.speedup else None,
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
        if solved := report.scores.solved.count:
            words.append(f"${spent / solved:.4f} for each solved attempt")
    if report.budget.held_usd:
        words.append(f"${report.budget.held_usd:.4f} held (smith budget show eval/{report.run})")
    return ", ".join(words)


def percent(share: Share) -> str:
    """``8/10 (80 %, interval 49 to 94 %)``."""
    return (
        f"{share.count}/{share.total} ({share.share:.0%}, interval {share.low * 100:.0f} to {share.high * 100:.0f} %)"
    ).replace("%,", " %,", 1)
