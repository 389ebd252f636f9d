"""The evidence of a run as SQL: two tables of facts, one of figures, and the view that every report reads.

The database is made anew from the evidence whenever it is asked for: in memory for a report, as a file for Datasette or
a notebook. It is never the place where anything is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sqlite_utils

from smith.evaluate.run import AttemptState
from smith.paths import write_atomically
from smith.records.attempt import RunConfig
from smith.score.metrics import Scores
from smith.score.shares import Mean, Share
from smith.score.speedups import Ratio
from smith.score.trials import Task

VIEW = "report"
_SCHEMA = """
CREATE TABLE runs (run TEXT PRIMARY KEY, panel TEXT, agent TEXT, model TEXT, created_at TEXT, smith TEXT);
CREATE TABLE tasks (
  run TEXT REFERENCES runs, task TEXT, tree TEXT, place INTEGER, kind TEXT, languages TEXT, device TEXT, size TEXT,
  reference_speedup REAL, PRIMARY KEY (run, task)
);
CREATE TABLE attempts (
  run TEXT, task TEXT, attempt INTEGER, verdict TEXT, ended TEXT, speedup REAL, speedup_low REAL, speedup_high REAL,
  usd_micros INTEGER, tokens INTEGER, seconds REAL, fail_to_pass_passed INTEGER, fail_to_pass INTEGER,
  pass_to_pass_passed INTEGER, pass_to_pass INTEGER, patch_bytes INTEGER, reasons TEXT,
  PRIMARY KEY (run, task, attempt), FOREIGN KEY (run, task) REFERENCES tasks
);
CREATE TABLE tests (
  run TEXT, task TEXT, attempt INTEGER, test TEXT, outcome TEXT, seconds REAL, message TEXT,
  FOREIGN KEY (run, task, attempt) REFERENCES attempts
);
CREATE TABLE figures (run TEXT REFERENCES runs, figure TEXT, value REAL, low REAL, high REAL, tasks INTEGER,
  PRIMARY KEY (run, figure));
CREATE VIEW report AS
  SELECT a.run, r.panel, r.agent, r.model, a.task, a.attempt, a.verdict, a.ended, a.verdict IS 'solved' AS solved,
    a.speedup, a.speedup_low, a.speedup_high, t.reference_speedup, a.usd_micros / 1e6 AS usd, a.tokens,
    round(a.seconds, 2) AS seconds, a.fail_to_pass_passed, a.fail_to_pass, a.pass_to_pass_passed, a.pass_to_pass,
    a.patch_bytes, t.kind, t.languages, t.device, t.size, a.reasons
  FROM attempts a JOIN tasks t USING (run, task) JOIN runs r USING (run)
  ORDER BY a.run, t.place, a.attempt;
"""


def rows_of(
    config: RunConfig, found: Sequence[AttemptState], tasks: Sequence[Task], scores: Scores
) -> sqlite_utils.Database:
    """A database in memory with one run."""
    db = sqlite_utils.Database(memory=True)
    db.conn.executescript(_SCHEMA)
    db["runs"].insert(
        {"run": config.run, "panel": config.panel, "agent": config.agent, "model": config.model,
         "created_at": config.created_at, "smith": config.smith}
    )  # fmt: skip
    trees = {task.id: task.tree for task in config.tasks}
    db["tasks"].insert_all(
        {"run": config.run, "task": task.id, "tree": trees[task.id], "place": place, "kind": task.strata.get("kind"),
         "languages": task.strata.get("language"), "device": task.strata.get("device"),
         "size": task.strata.get("size"), "reference_speedup": task.expert}
        for place, task in enumerate(tasks)
    )  # fmt: skip
    db["attempts"].insert_all(_attempt(config.run, state) for state in found)
    db["tests"].insert_all(_tests(config.run, found))
    db["figures"].insert_all({"run": config.run, **figure} for figure in figures(scores))
    return db


def _attempt(run: str, state: AttemptState) -> dict[str, Any]:
    attempt, graded = state.attempt, state.grade
    row: dict[str, Any] = {"run": run, "task": state.task, "attempt": state.number}
    row |= dict.fromkeys(("verdict", "ended", "speedup", "speedup_low", "speedup_high", "fail_to_pass_passed",
                          "fail_to_pass", "pass_to_pass_passed", "pass_to_pass", "patch_bytes"))  # fmt: skip
    row |= {"usd_micros": 0, "tokens": 0, "seconds": 0.0, "reasons": "[]"}
    if attempt is not None and graded is not None:
        fast = graded.speedup
        row |= {
            "verdict": graded.verdict.value,
            "ended": attempt.ended.value,
            "speedup": fast.geomean if fast else None,
            "speedup_low": fast.low if fast else None,
            "speedup_high": fast.high if fast else None,
            "usd_micros": attempt.micro_usd,
            "tokens": attempt.input_tokens + attempt.output_tokens,
            "seconds": attempt.seconds + graded.seconds,
            "fail_to_pass_passed": graded.fail_to_pass.passed,
            "fail_to_pass": graded.fail_to_pass.total,
            "pass_to_pass_passed": graded.pass_to_pass.passed,
            "pass_to_pass": graded.pass_to_pass.total,
            "patch_bytes": attempt.patch_bytes,
            "reasons": json.dumps([str(reason) for reason in graded.reasons], ensure_ascii=False),
        }
    return row


def _tests(run: str, found: Sequence[AttemptState]) -> Iterator[dict[str, Any]]:
    for state in found:
        for test in state.grade.tests if state.grade is not None else ():
            yield {"run": run, "task": state.task, "attempt": state.number, "test": test.id,
                   "outcome": test.outcome.value, "seconds": test.seconds, "message": test.message}  # fmt: skip


def figures(scores: Scores) -> Iterator[dict[str, Any]]:
    """Every figure of a run by name, with its interval where it has one and the number of tasks behind it."""

    def row(name: str, found: Share | Mean | Ratio | float | None, tasks: int | None = None) -> dict[str, Any]:
        if isinstance(found, Share):
            return {"figure": name, "value": found.share, "low": found.low, "high": found.high, "tasks": tasks}
        if isinstance(found, Mean):
            return {"figure": name, "value": found.mean, "low": found.low, "high": found.high, "tasks": found.tasks}
        if isinstance(found, Ratio):
            return {"figure": name, "value": found.ratio, "low": found.low, "high": found.high, "tasks": found.tasks}
        return {"figure": name, "value": found, "low": None, "high": None, "tasks": tasks}

    tasks = scores.tasks_solved.total
    yield row("solved", scores.solved, tasks)
    yield row("tasks_solved", scores.tasks_solved, tasks)
    yield row("missing", scores.missing, tasks)
    yield from (row(f"pass@{k}", mean) for k, mean in scores.pass_at.items())
    if scores.speed is not None:
        speed = scores.speed
        yield from (row(f"fast_{p}", mean) for p, mean in speed.fast_p.items())
        yield row("reached", speed.reached)
        yield row("speedup_geomean", speed.geomean, 0)
        yield row("speedup_geomean_all", speed.geomean_all)
        yield row("speedup_worst", speed.worst, scores.speedup_tasks)
        yield row("expert_harmonic", speed.expert_harmonic, scores.speedup_tasks)
    if scores.costs is not None:
        for name in ("usd", "tokens", "seconds", "usd_per_solved_task", "tokens_per_solved_task"):
            yield row(name, getattr(scores.costs, name), tasks)


def save(db: sqlite_utils.Database, path: Path) -> None:
    """Write the database as a file, whole or not at all."""
    write_atomically(path, bytes(db.conn.serialize()))
