"""Runs against the first of them: one document, printed as JSON or in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from smith.errors import BadInput
from smith.evaluate.run import states
from smith.paths import Layout
from smith.records.attempt import RunConfig
from smith.records.base import Record
from smith.report.evidence import tasks_of
from smith.score.compare import Comparison, Told, compare, corrected
from smith.score.trials import Task


class Compared(Record):
    """One run against the first."""

    run: str
    agent: str
    model: str | None
    comparison: Comparison


class ComparedRuns(Record):
    """What ``smith compare`` prints."""

    first: str
    agent: str
    model: str | None
    others: tuple[Compared, ...]
    notes: tuple[str, ...] = ()
    """What limits the comparison."""


def compare_runs(layout: Layout, configs: Sequence[RunConfig]) -> ComparedRuns:
    """Compare every run with the first over the tasks (by tree) that all of them have.

    Raises :class:`BadInput` where they have none in common, or where one run is named twice.
    """
    first, *others = configs
    names = [config.run for config in configs]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"{twice} is named twice", hint="name two runs, see: smith runs")
    common = [(t.id, t.tree) for t in first.tasks if all((t.id, t.tree) in _pins(c) for c in others)]
    if not common:
        raise BadInput(
            f"{' and '.join(names)} have no task in common",
            hint="only runs of the same bundles, by their trees, can be compared",
        )
    wanted = {task_id for task_id, _ in common}
    tasks = {c.run: [t for t in tasks_of(layout, c, states(layout, c)) if t.id in wanted] for c in configs}
    order = {task_id: place for place, (task_id, _) in enumerate(common)}
    for found in tasks.values():
        found.sort(key=lambda t: order[t.id])
    results = corrected([compare(tasks[first.run], tasks[c.run]) for c in others])
    return ComparedRuns(
        first=first.run,
        agent=first.agent,
        model=first.model,
        others=tuple(
            Compared(run=c.run, agent=c.agent, model=c.model, comparison=result)
            for c, result in zip(others, results, strict=True)
        ),
        notes=tuple(_notes(configs, tasks, len(common))),
    )


def _pins(config: RunConfig) -> set[tuple[str, str]]:
    return {(t.id, t.tree) for t in config.tasks}


def _notes(configs: Sequence[RunConfig], tasks: dict[str, list[Task]], common: int) -> list[str]:
    notes = []
    for config in configs:
        if len(config.tasks) > common:
            notes.append(f"{config.run} has {len(config.tasks) - common} tasks more that not all runs have: left out")
        missing = sum(trial.verdict is None for task in tasks[config.run] for trial in task.trials)
        if missing:
            notes.append(f"{config.run} misses {missing} attempts, which count as not solved")
    if len({config.attempts for config in configs}) > 1:
        words = ", ".join(str(config.attempts) for config in configs)
        notes.append(f"attempts a task differ ({words}): shares are compared, not pass@k of more than one")
    devices = {c.run: {task.strata["device"] for task in tasks[c.run]} for c in configs}
    if len({frozenset(found) for found in devices.values()}) > 1:
        notes.append(
            "graded on different devices: " + "; ".join(f"{r}: {', '.join(sorted(d))}" for r, d in devices.items())
        )
    if len(configs) > 2:
        notes.append(f"{len(configs) - 1} comparisons: p-values are corrected by Holm's procedure, intervals are not")
    return notes


def table(found: ComparedRuns) -> Table:
    """One line a comparison. Text of others is never read as markup."""
    shown = Table(title=f"against {found.first}", box=box.SIMPLE_HEAD, title_justify="left")
    for name, right in (("run", False), ("solves", True), ("of first", True), ("difference", True),
                        ("interval", True), ("won", True), ("lost", True), ("p", True), ("speed", True)):  # fmt: skip
        shown.add_column(name, justify="right" if right else "left", overflow="fold")
    for other in found.others:
        c = other.comparison
        shown.add_row(
            Text(other.run),
            f"{c.second:.1%}",
            f"{c.first:.1%}",
            f"{c.difference * 100:+.1f}",
            f"{c.low * 100:+.1f} to {c.high * 100:+.1f}",
            str(c.only_second),
            str(c.only_first),
            f"{c.p_value:.3f}" if c.p_value >= 0.001 else "<0.001",
            _speed(c),
        )
    return shown


def _speed(c: Comparison) -> str:
    if c.speed is None:
        return "-"
    if c.speed.low is None or c.speed.high is None:
        return f"{c.speed.ratio:.2f}x (1 task)"
    return f"{c.speed.ratio:.2f}x ({c.speed.low:.2f} to {c.speed.high:.2f})"


def answer(found: ComparedRuns, other: Compared) -> str:
    """One comparison as a sentence."""
    c = other.comparison
    n = f"n = {c.tasks} task{'s' if c.tasks != 1 else ''}"
    if c.told is Told.NOTHING:
        more = f"; about {c.tasks_needed} would show a difference as large as that seen" if c.tasks_needed else ""
        return f"no difference between {found.first} and {other.run} can be told with {n}{more}"
    better, worse = (other.run, found.first) if c.told is Told.SECOND else (found.first, other.run)
    points = abs(c.difference) * 100
    return f"{better} solves more than {worse}: {points:.1f} points, {c.test}, p = {c.p_value:.2g}, {n}"
