"""``smith regrade``."""

from __future__ import annotations

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
from smith.errors import EXIT_NO
from smith.evaluate.regrade import FOLDER, RegradedRun, Speed, regrade
from smith.evaluate.run import load_run


@click.command("regrade")
@click.argument("run", default="latest")
@click.option("--task", "tasks", multiple=True, help="Only this task (may be given again).")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Attempts at a time.")
@device_wait_option
@sandbox_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    run: str,
    tasks: tuple[str, ...],
    jobs: int,
    device_wait: float,
    sandbox: str,
    as_json: bool,
) -> None:
    """Grade again what RUN (default: the latest) handed in, from its patches alone.

    The run's evidence is not touched; the new grades lie beside it. Exit status 0 where every verdict is the same, 1
    where one is not or could not be found.
    """
    found = store(ctx)
    config = load_run(found.layout, run)
    save = found.layout.run(config.run) / FOLDER / datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    total = len(tasks or config.tasks) * config.attempts
    with progress(f"grading {config.run} again", total) as step:
        result = regrade(
            found, config, sandboxes.make(sandbox), machine_devices(device_wait), step, save=save, jobs=jobs, only=tasks
        )
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        _show(result)
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


def _speed(found: Speed) -> str:
    return f"{found.ratio:.2f}x ({found.low:.2f} to {found.high:.2f})"
