"""A run's rows as files for spreadsheets and papers."""

from __future__ import annotations

import csv
import io
import json

import sqlite_utils

from smith.report.rows import VIEW
from smith.report.run_report import RunReport, headline

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_csv(rows: sqlite_utils.Database) -> str:
    """One line an attempt, with the columns of the view. Text that a spreadsheet would take for a formula is quoted by
    an apostrophe: reasons hold what a submission printed."""
    written = io.StringIO()
    out: csv.DictWriter[str] | None = None
    for row in rows.query(f"SELECT * FROM {VIEW}"):
        if out is None:
            out = csv.DictWriter(written, row.keys(), lineterminator="\n")
            out.writeheader()
        row["reasons"] = "; ".join(json.loads(row["reasons"]))
        out.writerow({k: f"'{v}" if isinstance(v, str) and v.startswith(_FORMULA) else v for k, v in row.items()})
    return written.getvalue()


def as_markdown(report: RunReport, rows: sqlite_utils.Database) -> str:
    """Figures and attempts as tables of GitHub's Markdown."""
    title = f"{report.agent} on {report.panel}" + (f" with {report.model}" if report.model else "")
    lines = [f"# {cell(title)}", "", f"{cell(headline(report))}. Run `{report.run}`.", ""]
    lines += ["| figure | value | 95 % interval | tasks |", "|---|--:|--:|--:|"]
    for row in rows.query("SELECT * FROM figures"):
        interval = "" if row["low"] is None else f"{_number(row['low'])} to {_number(row['high'])}"
        lines.append(f"| {row['figure']} | {_number(row['value'])} | {interval} | {_number(row['tasks'])} |")
    lines += [
        "",
        "| task | attempt | verdict | speed-up | usd | tokens | seconds | why |",
        "|---|--:|---|--:|--:|--:|--:|---|",
    ]
    for row in rows.query(f"SELECT * FROM {VIEW}"):
        why = next(iter(json.loads(row["reasons"])), "")
        fast = "" if row["speedup"] is None else f"{row['speedup']:.2f}"
        lines.append(
            f"| {cell(row['task'])} | {row['attempt']} | {row['verdict'] or 'missing'} | {fast} | {row['usd']:.4f} "
            f"| {row['tokens']} | {row['seconds']:.1f} | {cell(why[:120])} |"
        )
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def cell(text: str) -> str:
    """Text that stays text: no table, link, HTML or mention is made of it."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]<>|~#" else c for c in " ".join(text.split()))
    return escaped.replace("@", "@\u200b")
