"""The page: what it shows, task by task, made of a run's evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from smith.errors import SmithError
from smith.evaluate.attempt import PATCH
from smith.evaluate.run import AttemptState, attempt_folder
from smith.freeze.bundle import INSTRUCTION
from smith.freeze.panels import receipts_of
from smith.paths import Layout
from smith.records.attempt import Ended, RunConfig
from smith.records.grade import GradeVerdict
from smith.records.panel import PanelTask
from smith.records.receipt import Receipt
from smith.records.results import Outcome, TestResult
from smith.report.html import plots
from smith.report.html.trajectory import Step, steps_of
from smith.report.kernels import compared
from smith.report.rows import VIEW
from smith.report.run_report import Read, headline

PATCH_LINES = 400
"""Lines of a patch that are shown; the evidence has all."""
TEST_LINES = 200
"""Tests that are listed one by one, those that did not pass first."""


@dataclass(frozen=True)
class Shown:
    """One attempt as it is shown."""

    number: int
    row: dict[str, Any]
    reasons: Sequence[str]
    patch: Markup
    cut: int
    """Lines of the patch that are left out."""
    tests: Sequence[TestResult]
    passed: int
    more_tests: int
    steps: Sequence[Step] = field(default_factory=tuple)
    detail: str = ""


@dataclass(frozen=True)
class TaskPage:
    """One task with its attempts."""

    id: str
    anchor: str
    tree: str
    facts: Sequence[tuple[str, str]]
    instruction: str
    attempts: Sequence[Shown]
    targets: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]]
    receipt: Sequence[tuple[str, str]]


def render(layout: Layout, config: RunConfig, found: Read) -> str:
    """The report of a run as one HTML document. Everything of a model's or a patch's is escaped, and the document
    forbids itself scripts and the network."""
    rows = [dict(row) for row in found.rows.query(f"SELECT * FROM {VIEW}")]
    folder = files("smith.report.html")
    template = _environment().from_string((folder / "page.html.j2").read_text("utf-8"))
    return template.render(
        style=Markup((folder / "style.css").read_text("utf-8")),
        report=found.report,
        config=config,
        headline=headline(found.report),
        figures=list(found.rows.query("SELECT * FROM figures")),
        plots=[(title, Markup(svg)) for title, svg in _plots(found.states, rows)],
        strata=found.report.scores.strata,
        tasks=list(_tasks(layout, config, found, rows)),
    )


@cache
def _environment() -> Environment:
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters["number"] = _number
    made.filters["money"] = lambda usd: f"${usd:.2f}" if usd >= 0.1 or not usd else f"${usd:.4f}"
    return made


def _number(value: float | None) -> str:
    """Four digits, and whole numbers whole."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def _plots(states: Sequence[AttemptState], rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    yield "Outcomes", plots.funnel(_funnel(states))
    timed = [
        plots.Timed(_name(row), row["speedup"], row["speedup_low"], row["speedup_high"], row["reference_speedup"])
        for row in rows
        if row["solved"] and row["speedup"] is not None
    ]
    if timed:
        yield "Speed-up", plots.speedups(timed)
    spent = any(row["usd"] for row in rows)
    unit = "US dollars" if spent else "seconds"
    pairs = [(row["usd"] if spent else row["seconds"], bool(row["solved"])) for row in rows if row["verdict"]]
    if len(pairs) > 1:
        yield f"{'Cost' if spent else 'Time'} against success", plots.cost_against_success(pairs, unit)


def _name(row: dict[str, Any]) -> str:
    return str(row["task"]) if row["attempt"] == 1 else f"{row['task']} #{row['attempt']}"


def _funnel(states: Sequence[AttemptState]) -> list[tuple[str, int]]:
    done = [(s.attempt, s.grade) for s in states if s.attempt is not None and s.grade is not None]
    graded = [(a, g) for a, g in done if g.verdict is not GradeVerdict.INFRA]
    usable = [g for _, g in graded if g.verdict is not GradeVerdict.INVALID_PATCH]
    return [
        ("planned", len(states)),
        ("graded", len(graded)),
        ("ended by the agent", sum(a.ended is Ended.SUBMITTED for a, _ in graded)),
        ("patch applies", len(usable)),
        ("tests ran to the end", sum(g.verdict in (GradeVerdict.SOLVED, GradeVerdict.FAILED) for g in usable)),
        ("solved", sum(g.verdict is GradeVerdict.SOLVED for g in usable)),
    ]


def _tasks(layout: Layout, config: RunConfig, found: Read, rows: Sequence[dict[str, Any]]) -> Iterator[TaskPage]:
    by_task: dict[str, list[tuple[AttemptState, dict[str, Any]]]] = {}
    for state, row in zip(found.states, rows, strict=True):
        by_task.setdefault(state.task, []).append((state, row))
    strata = {task.id: task.strata for task in found.tasks}
    for place, pinned in enumerate(config.tasks):
        receipt = _receipt(layout, pinned, strata[pinned.id]["device"])
        instruction = layout.task(pinned.id) / INSTRUCTION
        yield TaskPage(
            id=pinned.id,
            anchor=f"task-{place}",
            tree=pinned.tree,
            facts=[(name, value) for name, value in strata[pinned.id].items() if value != "unknown"],
            instruction=instruction.read_text("utf-8", "replace") if instruction.is_file() else "",
            attempts=[
                _attempt(attempt_folder(layout, config.run, pinned.id, state.number), state, row)
                for state, row in by_task[pinned.id]
            ],
            targets=list(_targets(receipt, [state for state, _ in by_task[pinned.id]])),
            receipt=_facts(receipt) if receipt else [],
        )


def _attempt(folder: Path, state: AttemptState, row: dict[str, Any]) -> Shown:
    if state.grade is None:
        return Shown(state.number, row, (), Markup(), 0, (), 0, 0)
    patch = (folder / PATCH).read_bytes().decode("utf-8", "replace")
    lines = patch.splitlines(keepends=True)
    tests = sorted(state.grade.tests, key=lambda t: t.outcome is Outcome.PASSED)
    return Shown(
        number=state.number,
        row=row,
        reasons=json.loads(row["reasons"]),
        patch=highlighted("".join(lines[:PATCH_LINES])),
        cut=max(0, len(lines) - PATCH_LINES),
        tests=tests[:TEST_LINES],
        passed=sum(t.outcome is Outcome.PASSED for t in tests),
        more_tests=max(0, len(tests) - TEST_LINES),
        steps=steps_of(folder),
        detail=state.attempt.detail if state.attempt else "",
    )


def highlighted(patch: str) -> Markup:
    """A patch with its added and removed lines marked."""
    from pygments import highlight

    # The library escapes what it marks; nothing else of the patch reaches the page.
    return Markup(highlight(patch, *_marking()))


@cache
def _marking() -> tuple[Any, Any]:
    # Made once: a thousand patches are marked with them.
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import DiffLexer

    return DiffLexer(stripnl=False), HtmlFormatter(nowrap=True)


def _receipt(layout: Layout, pinned: PanelTask, device: str) -> Receipt | None:
    try:
        stored = receipts_of(layout, pinned.id, pinned.tree)
    except SmithError:
        return None
    return next((s.receipt for s in stored if s.blob == pinned.receipts.get(device)), None)


def _facts(receipt: Receipt) -> list[tuple[str, str]]:
    facts = [
        ("device", receipt.device),
        ("verdict", receipt.verdict.value),
        ("fail to pass", str(len(receipt.fail_to_pass))),
        ("pass to pass", str(len(receipt.pass_to_pass))),
        ("unstable", str(len(receipt.flaky))),
        ("smith", receipt.smith),
    ]
    if receipt.timing is not None:
        timing = receipt.timing
        facts.append(("reference", f"{timing.geomean:.2f}x, interval {timing.low:.2f} to {timing.high:.2f}"))
    if receipt.environment is not None:
        facts.append(("environment", receipt.environment.name))
    facts.extend(("not proved", words) for words in receipt.not_proved)
    return facts


def _targets(
    receipt: Receipt | None, states: Sequence[AttemptState]
) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
    """What the compile gate found, a target at a time: baseline, reference and each submission side by side."""
    known = receipt.targets if receipt is not None else {}
    graded = [(s.number, s.grade.targets) for s in states if s.grade is not None]
    for target in dict.fromkeys((*known, *(target for _, found in graded for target in found))):
        name = "submission" if len(states) == 1 else "submission #{}"
        submitted = [(name.format(number), found[target]) for number, found in graded if target in found]
        words = [f"reference {known[target].verdict}"] if target in known else []
        words += [f"{who} {found.verdict}" for who, found in submitted]
        yield f"{target}: {', '.join(words)}", *compared(known.get(target), submitted)
