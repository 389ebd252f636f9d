"""A leaderboard as one HTML document, in the look of reports: it loads nothing and runs no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from smith import __version__
from smith.leaderboard.board import Board, Leaderboard, Row, rule
from smith.leaderboard.shown import cells, columns, is_text, name_of, notes
from smith.report.html import plots
from smith.report.run_report import of_tasks, ratio
from smith.score.compare import Comparison, Told

MOST_IN_MATRIX = 16
_STYLE = """
table.board td, table.board th { padding-right: .95rem; white-space: nowrap; }
table.board td.agent { white-space: normal; min-width: 8rem; }
.tie { display: inline-block; min-width: 1.35em; text-align: center; margin-right: .15em; border-radius: .3em;
  background: var(--panel); border: 1px solid var(--line); font-size: .84em; }
table.pairs td.n { min-width: 4.2em; color: var(--dim); }
table.pairs td.better { color: var(--good); font-weight: 600; }
table.pairs td.worse { color: var(--bad); font-weight: 600; }
"""
_Cell = tuple[str, str, str]
"""Class, text, and what is said of it."""


@dataclass(frozen=True)
class _Row:
    name: str
    run: str
    letters: Sequence[str]
    cells: Sequence[str]
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class _Board:
    device: str
    rule: str
    plot: Markup
    columns: Sequence[tuple[str, bool]]
    rows: Sequence[_Row]
    matrix: Sequence[tuple[str, Sequence[_Cell]]]
    more: bool


def render(found: Leaderboard) -> str:
    """The page. Everything of a run is escaped, and the document forbids itself scripts and the network."""
    env = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = env.from_string((files("smith.leaderboard") / "page.html.j2").read_text("utf-8"))
    style = (files("smith.report.html") / "style.css").read_text("utf-8")
    return template.render(
        found=found,
        style=Markup(style + _STYLE),
        boards=[_board(board) for board in found.boards],
        notes=list(notes(found)),
        version=__version__,
    )


def _board(board: Board) -> _Board:
    wanted = columns(board)
    solved = [plots.Solved(_short(name_of(r)), r.pass_at_1.mean, r.pass_at_1.low, r.pass_at_1.high) for r in board.rows]
    return _Board(
        device=board.device,
        rule=rule(board),
        plot=Markup(plots.shares(solved)),
        columns=[(name, not is_text(name)) for name in wanted],
        rows=[_Row(name_of(r), r.run, _parted(r.letters), cells(r, wanted), _facts(r)) for r in board.rows],
        matrix=_matrix(board) if len(board.rows) > 1 else [],
        more=len(board.rows) > MOST_IN_MATRIX,
    )


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"


def _parted(letters: str) -> list[str]:
    """Letters, each with its number where it has one."""
    parts: list[str] = []
    for sign in letters:
        if sign.isdigit() and parts:
            parts[-1] += sign
        else:
            parts.append(sign)
    return parts


def _facts(row: Row) -> list[tuple[str, str]]:
    facts = [
        ("run", row.run),
        ("made", f"{row.created_at}, smith {row.smith}"),
        ("attempts at each task", str(row.attempts)),
        *_speed(row),
        ("spent", f"${row.usd:.2f}, {row.tokens:,} tokens, {row.seconds_per_attempt:.0f} s an attempt{_dear(row)}"),
        *row.options.items(),
    ]
    if row.entry is not None:
        facts += [("evidence", row.entry), ("grade it again", f"smith regrade --entry {row.entry[:12]}")]
    else:
        facts.append(("evidence", f"not sealed: smith leaderboard add {row.run}"))
    return facts


def _dear(row: Row) -> str:
    if row.tokens_per_solved_task is None or not row.tokens:
        return ""
    return f"; {row.tokens_per_solved_task:,.0f} tokens a solved task"


def _speed(row: Row) -> list[tuple[str, str]]:
    if row.speedup is None or row.reached is None:
        return []
    tasks = f"{row.speedup.tasks} timed task{'s' * (row.speedup.tasks != 1)}"
    return [
        ("speed-up", f"{ratio(row.speedup)} over {tasks}, with 1 for what was not solved"),
        ("as fast as the reference", f"{of_tasks(row.reached)} of the attempts at {tasks}"),
    ]


def _matrix(board: Board) -> list[tuple[str, list[_Cell]]]:
    known = {(p.first, p.second): p.comparison for p in board.pairs}
    places = range(min(len(board.rows), MOST_IN_MATRIX))
    return [(name_of(board.rows[i]), [_cell(known.get((i, j)), known.get((j, i))) for j in places]) for i in places]


def _cell(forward: Comparison | None, backward: Comparison | None) -> _Cell:
    """The row's share less the column's; ``forward`` where the row is the first of the pair."""
    found = forward or backward
    if found is None:
        return "", "", ""
    points = found.difference * (-100 if forward is not None else 100)
    wins = Told.FIRST if forward is not None else Told.SECOND
    told = "" if found.told is Told.NOTHING else "better" if found.told is wins else "worse"
    more = f", about {found.tasks_needed} tasks would show such a difference" if not told and found.tasks_needed else ""
    return told, f"{points:+.1f}", f"p = {found.p_value:.2g}, {found.test}, n = {found.tasks}{more}"
