"""A run as rows of a public data set: what was measured, and nothing of hidden tests.

Names of hidden tests and what they print stay out, so reasons are codes only. A submission's patch stays out where it
would give a solution away: at tasks that are held out, and where it is the reference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smith.errors import SmithError
from smith.evaluate.attempt import PATCH
from smith.evaluate.run import AttemptState, attempt_folder
from smith.freeze.bundle import REFERENCE, TASK_FILE
from smith.freeze.panel_tree import panel_tree
from smith.knowledge.held_out import HeldOut
from smith.paths import Layout
from smith.records.attempt import RunConfig
from smith.records.task import TaskFile
from smith.report.rows import VIEW
from smith.report.run_report import Read

LARGEST_PATCH = 1 << 20
"""Bytes of a patch that a row holds."""


@dataclass(frozen=True)
class Column:
    """A column: its name, its type as data sets call it (``string``, ``int64``, ``float64``, ``bool``), its meaning,
    and whether a cell is a list of ``many``."""

    name: str
    dtype: str
    about: str
    many: bool = False


@dataclass(frozen=True)
class Table:
    """One configuration of the data set."""

    name: str
    about: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]


_ATTEMPTS = (
    Column("run", "string", "the run"),
    Column("panel", "string", "name of the panel"),
    Column("panel_tree", "string", "what it pinned (bundles, receipts, policy), as the id of a git tree"),
    Column("agent", "string", "what worked"),
    Column("model", "string", "the model that it asked; null where it asks none"),
    Column("task", "string", "`owner__repo-number`, with `~variant` where the bundle is not the plain fix"),
    Column("attempt", "int64", "number of the attempt at the task, from 1"),
    Column("verdict", "string", "solved, failed, tampered, invalid_patch, timeout, infra; null where it is missing"),
    Column("solved", "bool", "whether it counts; a missing attempt has not solved"),
    Column("ended", "string", "how the agent's work ended"),
    Column("reason_codes", "string", "why it did not solve, as codes", many=True),
    Column("speedup", "float64", "times as fast as the baseline, mean over the cases; null where not measured"),
    Column("speedup_low", "float64", "its interval of 95 %"),
    Column("speedup_high", "float64", "the upper end of it"),
    Column("reference_speedup", "float64", "the same of the upstream's own solution"),
    Column("usd", "float64", "charged for models, in US dollars"),
    Column("tokens", "int64", "input and output"),
    Column("seconds", "float64", "wall time of the attempt and its grading"),
    Column("fail_to_pass_passed", "int64", "tests passed of those that the baseline fails"),
    Column("fail_to_pass", "int64", "how many there are"),
    Column("pass_to_pass_passed", "int64", "tests passed of those that the baseline passes"),
    Column("pass_to_pass", "int64", "how many there are"),
    Column("device", "string", "what it was graded on"),
    Column("patch_bytes", "int64", "size of the submission"),
    Column("patch_sha256", "string", "its digest"),
    Column("patch", "string", "the submission as a git patch; null where it is left out"),
    Column("patch_left_out", "string", "why: held_out, reference, too_large, not_text, missing; else empty"),
)
_TASKS = (
    Column("task", "string", "as in attempts"),
    Column("tree", "string", "the bundle, as the id of a git tree"),
    Column("repo", "string", "the upstream; null where the bundle has gone"),
    Column("license", "string", "SPDX name of the upstream's licence, where its file is one that is known"),
    Column("kind", "string", "fix, feature, performance, ..."),
    Column("languages", "string", "of the kernels that the reference changes", many=True),
    Column("size", "string", "lines that the reference adds and removes"),
    Column("device", "string", "what its attempts were graded on"),
    Column("reference_speedup", "float64", "of the upstream's own solution, in the pinned receipt"),
    Column("held_out", "bool", "whether the task, or a relative of it, is in a held-out panel"),
    Column("attempts", "int64", "that were planned"),
    Column("attempts_solved", "int64", "that solved it"),
)
_FIGURES = (
    Column("figure", "string", "name of the figure"),
    Column("value", "float64", "shares are from 0 to 1; null where there is none"),
    Column("low", "float64", "its interval of 95 %, where it has one"),
    Column("high", "float64", "the upper end of it"),
    Column("tasks", "int64", "how many tasks are behind it"),
)


def tables(layout: Layout, config: RunConfig, found: Read) -> list[Table]:
    """The configurations of a run's data set: ``attempts`` (the default), ``tasks`` and ``figures``."""
    held_out = HeldOut.of(layout)
    attempts, tasks = _attempts(layout, config, found, held_out), _tasks(layout, config, found, held_out)
    figures = tuple({c.name: row[c.name] for c in _FIGURES} for row in found.rows.query("SELECT * FROM figures"))
    return [
        Table("attempts", "a row for every planned attempt", _ATTEMPTS, tuple(attempts)),
        Table("tasks", "a row for every task of the panel", _TASKS, tuple(tasks)),
        Table("figures", "the scores of the run", _FIGURES, figures),
    ]


def _attempts(layout: Layout, config: RunConfig, found: Read, held_out: HeldOut) -> Iterator[dict[str, Any]]:
    tree = panel_tree(config.tasks, sanitize=config.sanitize)
    for row, state in zip(found.rows.query(f"SELECT * FROM {VIEW}"), found.states, strict=True):
        known = {column.name: row.get(column.name) for column in _ATTEMPTS}
        reasons = state.grade.reasons if state.grade is not None else ()
        patch, why = _patch(layout, config, state, held_out)
        yield {
            **known,
            "panel_tree": tree,
            "solved": bool(row["solved"]),
            "reason_codes": list(dict.fromkeys(reason.code for reason in reasons)),
            "device": state.grade.device if state.grade is not None else None,
            "patch_sha256": state.attempt.patch_sha256 if state.attempt is not None else None,
            "patch": patch,
            "patch_left_out": why,
        }


def _patch(layout: Layout, config: RunConfig, state: AttemptState, held_out: HeldOut) -> tuple[str | None, str]:
    """A submission as text, or why it is left out."""
    if state.attempt is None:
        return None, "missing"
    if held_out.forbids(state.task):
        return None, "held_out"
    data = (attempt_folder(layout, config.run, state.task, state.number) / PATCH).read_bytes()
    reference = layout.task(state.task) / REFERENCE
    if data and reference.is_file() and _changes(data) == _changes(reference.read_bytes()):
        return None, "reference"
    if len(data) > LARGEST_PATCH:
        return None, "too_large"
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        return None, "not_text"


def _changes(patch: bytes) -> list[bytes]:
    """The lines that a patch adds and removes, in whatever form and order of files it is written."""
    return sorted(line for line in patch.splitlines() if line[:1] in (b"+", b"-") and line[:3] not in (b"+++", b"---"))


def _tasks(layout: Layout, config: RunConfig, found: Read, held_out: HeldOut) -> Iterator[dict[str, Any]]:
    for pinned, task in zip(config.tasks, found.tasks, strict=True):
        try:
            spec = TaskFile.load(layout.task(pinned.id) / TASK_FILE).metadata.smith
        except SmithError:
            spec = None
        yield {
            "task": pinned.id,
            "tree": pinned.tree,
            "repo": spec.source.repo if spec else None,
            "license": spec.source.license if spec else None,
            "kind": spec.kind.value if spec else None,
            "languages": list(spec.languages) if spec else [],
            "size": task.strata.get("size"),
            "device": task.strata.get("device"),
            "reference_speedup": task.expert,
            "held_out": bool(held_out.forbids(pinned.id)),
            "attempts": len(task.trials),
            "attempts_solved": task.solved,
        }


def licences(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, int]]:
    """Upstream, licence and number of tasks, for each upstream of the rows of ``tasks``."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row["repo"] or "unknown", row["license"] or "not told from its files")
        counts[key] = counts.get(key, 0) + 1
    return [(repo, name, count) for (repo, name), count in sorted(counts.items())]


def as_lines(table: Table) -> bytes:
    """A table as JSON lines, every column in every line. In ASCII: some readers split lines at U+2028."""
    return b"".join(json.dumps(dict(row)).encode() + b"\n" for row in table.rows)
