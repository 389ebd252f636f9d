"""A leaderboard in the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from smith.leaderboard.board import Board, Leaderboard, Row, rule
from smith.report.flat import cell

COLUMNS = (
    "rank", "tied", "agent", "pass@1", "interval", "solved", "attempts", "as reference", "speed-up", "usd/solved",
    "made", "entry",
)  # fmt: skip
_NOT_IN_TERMINAL = frozenset({"as reference", "made"})
"""There the width is better left to names."""
_WORDS = frozenset({"tied", "agent", "made", "entry"})
SPEED = frozenset({"as reference", "speed-up"})


def columns(board: Board) -> list[str]:
    """Those that say something: no speed where nothing is about speed, no cost where nothing cost anything."""
    speed = any(row.speedup is not None for row in board.rows)
    cost = any(row.usd or row.tokens for row in board.rows)
    return [c for c in COLUMNS if (speed or c not in SPEED) and (cost or c != "usd/solved")]


def is_text(column: str) -> bool:
    """Whether a column holds words, which stand to the left."""
    return column in _WORDS


def cells(row: Row, wanted: Sequence[str]) -> list[str]:
    """A row as text."""
    some, share = row.tasks_solved, row.pass_at_1
    made = {
        "rank": str(row.rank),
        "tied": row.letters,
        "agent": name_of(row),
        "pass@1": f"{share.mean * 100:.0f} %",
        "interval": f"{share.low * 100:.0f} to {share.high * 100:.0f} %",
        "solved": f"{some.count}/{some.total}",
        "attempts": str(row.attempts),
        "as reference": f"{row.reached.mean * 100:.0f} %" if row.reached is not None else "-",
        "speed-up": f"{row.speedup.ratio:.2f}x" if row.speedup is not None else "-",
        "usd/solved": "-" if row.usd_per_solved_task is None else f"${row.usd_per_solved_task:.2f}",
        "made": row.created_at[:10],
        "entry": row.entry[:12] if row.entry is not None else "not sealed",
    }
    return [made[name] for name in wanted]


def name_of(row: Row) -> str:
    """Who ran, in a few words."""
    return f"{row.agent} with {row.model}" if row.model else row.agent


def title(found: Leaderboard) -> str:
    """What the tables are about, in a line."""
    state = "" if found.current else ", which is not its tree any more"
    tasks = f"{found.tasks} task{'s' * (found.tasks != 1)}"
    return f"{found.panel}: {tasks}, revision {found.revision}, tree {found.panel_tree[:12]}{state}"


def table(board: Board) -> Table:
    """One board for the terminal. Text of others is never read as markup."""
    shown = Table(title=f"on {board.device or 'no device'}", box=box.SIMPLE_HEAD, title_justify="left")
    wanted = [name for name in columns(board) if name not in _NOT_IN_TERMINAL]
    for name in wanted:
        words = is_text(name)
        shown.add_column(name, justify="left" if words else "right", overflow="fold", no_wrap=name != "agent")
    for row in board.rows:
        shown.add_row(*(Text(text) for text in cells(row, wanted)))
    return shown


def notes(found: Leaderboard) -> Iterator[str]:
    """What a reader of the tables should know."""
    if not found.boards:
        yield f"no entries yet: smith eval {found.panel} ..., then smith leaderboard add RUN"
    for board in found.boards:
        if len({row.attempts for row in board.rows}) > 1:
            yield f"on {board.device}: runs made different numbers of attempts; shares are compared"
    if len(found.boards) > 1:
        yield "results on different devices are not compared"
    for tree, count in found.other_trees.items():
        entries = f"{count} entr{'ies' if count != 1 else 'y'}"
        yield f"{entries} of another tree of this panel: smith leaderboard show {found.panel} --tree {tree[:12]}"
    for digest, count in found.left_out.items():
        yield f"left out, {count} finding{'s' * (count != 1)}: {digest[:12]} (smith leaderboard check)"


def as_markdown(found: Leaderboard) -> str:
    """The tables in GitHub's Markdown."""
    lines = [f"# Leaderboard of {cell(title(found))}", ""]
    for board in found.boards:
        wanted = columns(board)
        lines += [f"On {cell(board.device)}; {rule(board)}:", ""]
        lines += [f"| {' | '.join(wanted)} |", f"|{'|'.join('---' if is_text(c) else '--:' for c in wanted)}|"]
        lines += [f"| {' | '.join(cell(text) for text in cells(row, wanted))} |" for row in board.rows]
        lines.append("")
    lines += [f"- {cell(note)}" for note in notes(found)]
    return "\n".join(lines).rstrip() + "\n"
