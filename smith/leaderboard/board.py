"""The table: runs of one panel tree, ranked by what can be told and not by what was drawn.

Runs are ranked by the share of attempts that solved (missing ones have not), and two of them are told apart only where
the paired comparison of :mod:`smith.score.compare` tells them apart, corrected over all pairs. Results on different
devices are never in one table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from smith.errors import BadInput
from smith.evaluate.run import states
from smith.freeze.bundle import Store
from smith.freeze.panel_tree import known_trees, panel_tree
from smith.leaderboard.check import Gate
from smith.leaderboard.entry import Entry, entry_folders
from smith.leaderboard.figures import tasks_of_entry
from smith.records.attempt import RunConfig
from smith.records.base import Record
from smith.records.panel import Panel
from smith.score.compare import LEVEL, Comparison, Told, compare, corrected
from smith.score.letters import letters
from smith.score.metrics import scores
from smith.score.shares import Mean, Share
from smith.score.speedups import Ratio
from smith.score.trials import Task


class Row(Record):
    """One run."""

    rank: int
    """One more than the number of runs that are told to be better."""
    letters: str
    """Runs that share a letter cannot be told apart."""
    entry: str | None
    """Digest of the sealed evidence; null for a run that lies here and is not sealed."""
    run: str
    agent: str
    model: str | None
    options: dict[str, str]
    attempts: int
    pass_at_1: Mean
    tasks_solved: Share
    reached: Mean | None
    """Share of attempts that reach 95 % of the reference's speed-up; null where no task is about speed."""
    speedup: Ratio | None
    """Geometric mean of the speed-up with 1 for what was not solved; null where no task is about speed."""
    usd: float
    tokens: int
    usd_per_solved_task: float | None
    tokens_per_solved_task: float | None
    seconds_per_attempt: float
    created_at: str
    smith: str


class Pair(Record):
    """One run against another, by the places of their rows, from 0; p-values are Holm's over all pairs."""

    first: int
    second: int
    comparison: Comparison


class Board(Record):
    """The runs that were graded on the same devices, the best first."""

    device: str
    rows: tuple[Row, ...]
    pairs: tuple[Pair, ...]


class Leaderboard(Record):
    """What ``smith leaderboard show --json`` prints of one panel."""

    panel: str
    panel_tree: str
    revision: int
    """Of the panel, where it last had this tree."""
    current: bool
    """Whether the panel still has this tree."""
    tasks: int
    boards: tuple[Board, ...]
    other_trees: dict[str, int]
    """How many entries there are of other trees of this panel."""
    left_out: dict[str, int]
    """Entries that the check refuses, by digest, and how many findings each has."""


@dataclass(frozen=True)
class _Runner:
    config: RunConfig
    tasks: list[Task]
    entry: str | None


def leaderboard(store: Store, panel: str, *, tree: str = "", also: Iterable[RunConfig] = ()) -> Leaderboard:
    """Rank the entries of one tree of ``panel`` (the present one, or that which ``tree`` begins), and with them runs
    that lie here and are not sealed.

    Raises :class:`BadInput` where the panel has or had no such tree, or a run is of another.
    """
    known = known_trees(store, panel)
    if not known:
        raise BadInput(f"there is no panel {panel} here, and never was", hint="smith panel new")
    chosen = _chosen(known, panel, tree)
    gate = Gate(store)
    runners: list[_Runner] = []
    others: defaultdict[str, int] = defaultdict(int)
    left_out: dict[str, int] = {}
    for folder in entry_folders(store.layout, panel):
        entry, findings = gate.findings(folder)
        if findings or entry is None:
            left_out[folder.name] = len(findings)
        elif entry.manifest.panel_tree != chosen:
            others[entry.manifest.panel_tree] += 1
        else:
            runners.append(_of_entry(entry, gate))
    sealed = {runner.config.run for runner in runners}
    runners += [_of_run(store, c, gate, chosen) for c in also if c.run not in sealed]
    by_device: defaultdict[str, list[_Runner]] = defaultdict(list)
    for runner in runners:
        by_device[", ".join(sorted({t.strata["device"] for t in runner.tasks} - {""}))].append(runner)
    version = known[chosen]
    return Leaderboard(
        panel=panel,
        panel_tree=chosen,
        revision=version.revision,
        current=chosen == next(iter(known)),
        tasks=len(version.tasks),
        boards=tuple(_board(device, some) for device, some in sorted(by_device.items())),
        other_trees=dict(others),
        left_out=left_out,
    )


def _chosen(known: Mapping[str, Panel], panel: str, tree: str) -> str:
    if not tree:
        return next(iter(known))
    found = [one for one in known if one.startswith(tree)]
    if len(found) != 1:
        what = "no" if not found else "more than one"
        raise BadInput(f"{what} tree of the panel {panel} begins with {tree}", hint=f"there are: {', '.join(known)}")
    return found[0]


def _of_entry(entry: Entry, gate: Gate) -> _Runner:
    return _Runner(entry.config, tasks_of_entry(entry.config, entry.states, gate.receipts), entry.digest)


def _of_run(store: Store, config: RunConfig, gate: Gate, chosen: str) -> _Runner:
    if panel_tree(config.tasks, sanitize=config.sanitize) != chosen:
        raise BadInput(f"{config.run} is of other tasks or receipts than tree {chosen[:12]} of its panel")
    return _Runner(config, tasks_of_entry(config, states(store.layout, config), gate.receipts), None)


def _board(device: str, runners: Sequence[_Runner]) -> Board:
    rows = sorted((_row(runner) for runner in runners), key=_order)
    by_key = {(runner.config.run, runner.entry): runner.tasks for runner in runners}
    tasks = [by_key[row.run, row.entry] for row in rows]
    places = list(combinations(range(len(rows)), 2))
    found = corrected([compare(tasks[i], tasks[j]) for i, j in places])
    apart = [(i, j, c.told) for (i, j), c in zip(places, found, strict=True) if c.told is not Told.NOTHING]
    worse = [j if told is Told.FIRST else i for i, j, told in apart]
    marks = letters(len(rows), [(i, j) for i, j, _ in apart])
    return Board(
        device=device,
        rows=tuple(
            row.model_copy(update={"rank": 1 + worse.count(place), "letters": marks[place]})
            for place, row in enumerate(rows)
        ),
        pairs=tuple(Pair(first=i, second=j, comparison=c) for (i, j), c in zip(places, found, strict=True)),
    )


def _order(row: Row) -> tuple[float, float, float, str]:
    """The best first; what solves as much, by speed, then by what a solved task costs."""
    cost = row.usd_per_solved_task
    fast = row.speedup.ratio if row.speedup is not None else 1.0
    return (-row.pass_at_1.mean, -fast, float("inf") if cost is None else cost, row.created_at)


def _row(runner: _Runner) -> Row:
    config, scored = runner.config, scores(runner.tasks)
    costs, speed = scored.costs, scored.speed
    assert costs is not None
    return Row(
        rank=1,
        letters="",
        entry=runner.entry,
        run=config.run,
        agent=config.agent,
        model=config.model,
        options=config.agent_options if runner.entry is not None else {},
        attempts=config.attempts,
        pass_at_1=scored.pass_at[1],
        tasks_solved=scored.tasks_solved,
        reached=speed.reached if speed is not None else None,
        speedup=speed.geomean_all if speed is not None else None,
        usd=costs.usd,
        tokens=costs.tokens,
        usd_per_solved_task=costs.usd_per_solved_task,
        tokens_per_solved_task=costs.tokens_per_solved_task,
        seconds_per_attempt=costs.seconds_per_attempt,
        created_at=config.created_at,
        smith=config.smith,
    )


def rule(board: Board) -> str:
    """What ranks and letters mean, in a sentence."""
    pairs = len(board.pairs)
    words = "a rank is one more than the runs told to be better; runs that share a letter cannot be told apart"
    return f"{words} (paired by task, {LEVEL:.0%} level, Holm over {pairs} pair{'s' * (pairs != 1)})"
