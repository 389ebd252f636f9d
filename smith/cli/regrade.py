"""``smith regrade``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click
from rich import box
from rich.table import Table
from rich.text import Text

from smith import sandbox as sandboxes
from smith.cli.common import (
    device_wait_option,
    json_option,
    machine_devices,
    print_json,
    progress,
    sandbox_option,
    screen,
    store,
)
from smith.errors import EXIT_NO, BadInput
from smith.evaluate.regrade import FOLDER, RegradedRun, Speed, regrade
from smith.evaluate.run import load_run
from smith.leaderboard.again import FigureAgain, figures_again
from smith.leaderboard.entry import find_entry
from smith.leaderboard.receipts import PinnedReceipts


@click.command("regrade")
@click.argument("run", required=False)
@click.option("--entry", metavar="DIGEST", help="Instead of a run: an entry of the leaderboard, or how it begins.")
@click.option("--task", "tasks", multiple=True, help="Only this task (may be given again).")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Attempts at a time.")
@device_wait_option
@sandbox_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    run: str | None,
    entry: str | None,
    tasks: tuple[str, ...],
    jobs: int,
    device_wait: float,
    sandbox: str,
    as_json: bool,
) -> None:
    """Grade again what RUN (default: the latest) handed in, from its patches alone.

    With --entry, what lies in the leaderboard, and its figures from the new grades. The evidence is not touched; new
    grades of a run lie beside it, those of an entry in .smith/regrades. Exit status 0 where every verdict is the same,
    1 where one is not or could not be found.
    """
    found = store(ctx)
    if run is not None and entry is not None:
        raise BadInput("give a run, or --entry and none")
    sealed = find_entry(found.layout, entry) if entry is not None else None
    config = sealed.config if sealed is not None else load_run(found.layout, run or "latest")
    of_run = found.layout.run(config.run) / FOLDER
    beside = found.layout.volatile / FOLDER / sealed.digest if sealed is not None else of_run
    save = beside / datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    evidence = sealed.folder if sealed is not None else None
    total = len(tasks or config.tasks) * config.attempts
    with progress(f"grading {config.run} again", total) as step:
        result = regrade(
            found,
            config,
            sandboxes.make(sandbox),
            machine_devices(device_wait),
            step,
            save=save,
            evidence=evidence,
            jobs=jobs,
            only=tasks,
        )
    figures = figures_again(sealed, save, PinnedReceipts(found)) if sealed is not None else []
    if as_json:
        more = {"entry": sealed.digest, "figures": [f.model_dump(mode="json") for f in figures]} if sealed else {}
        print_json({**result.model_dump(mode="json"), **more})
    else:
        _show(result)
        kept = sum(s.grade is not None for s in sealed.states) - (result.same + result.different) if sealed else 0
        for line in _figures(figures, kept):
            screen.print(line, markup=False, soft_wrap=True)
    ctx.exit(0 if result.same == len(result.attempts) else EXIT_NO)


def _show(result: RegradedRun) -> None:
    odd = [r for r in result.attempts if r.same is not True]
    if odd:
        table = Table(box=box.SIMPLE_HEAD)
        for name in ("task", "before", "now", "why"):
            table.add_column(name, overflow="fold")
        for one in odd:
            label = one.task if one.attempt == 1 else f"{one.task} #{one.attempt}"
            table.add_row(Text(label), one.before, one.after or "not graded", Text(one.why))
        screen.print(table)
    for one in result.attempts:
        if one.speed_before and one.speed_after:
            words = f"{one.task} #{one.attempt}: {_speed(one.speed_before)} before, {_speed(one.speed_after)} now"
            screen.print(words, markup=False, soft_wrap=True)
    words = f"{result.same} of {len(result.attempts)} verdicts the same"
    if result.not_graded:
        words += f", {result.not_graded} could not be graded here"
    if result.skipped:
        words += f"; {result.skipped} attempts had no grade before"
    screen.print(words, markup=False)


def _figures(again: Sequence[FigureAgain], kept: int) -> Iterator[str]:
    """The figures of an entry that came out otherwise, or that none did."""
    other = [f for f in again if f.sealed != f.now]
    for f in other:
        was, now = ("none" if v is None else f"{v:.4g}" for v in (f.sealed, f.now))
        yield f"{f.figure}: {was} sealed, {now} now"
    if again and not other:
        yield f"all {len(again)} figures but costs come out as sealed"
    if kept:
        yield f"{kept} attempts were not graded again: their sealed grades are in these figures"


def _speed(found: Speed) -> str:
    return f"{found.ratio:.2f}x ({found.low:.2f} to {found.high:.2f})"
