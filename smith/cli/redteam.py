"""``smith redteam``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from smith import __version__
from smith import sandbox as sandboxes
from smith.cli.common import (
    choose_tasks,
    device_option,
    device_wait_option,
    json_option,
    machine_devices,
    print_json,
    progress,
    sandbox_option,
    screen,
    store,
)
from smith.cli.grade import expected_receipt
from smith.errors import EXIT_NO, BadInput
from smith.freeze.bundle import Store
from smith.freeze.panels import StoredReceipt, load_panel, pinned_receipt
from smith.grade.environments import Environments
from smith.parallel import each
from smith.paths import write_atomically
from smith.records.redteam import Attacked, Matrix, Standing, Tried
from smith.redteam.base import Hack, catalogue
from smith.redteam.controls import CONTROLS, Control
from smith.redteam.report import document, markdown, summary
from smith.redteam.run import Work, attempt
from smith.redteam.target import Target


@click.command("redteam")
@click.argument("tasks", nargs=-1)
@click.option("--panel", help="All tasks of this panel, each on the first device that is pinned.")
@click.option("--hack", "names", multiple=True, metavar="NAME", help="Only this hack or control (again for more).")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Submissions at a time.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where matrix.md, matrix.json, grades and patches go; finished ones that lie there are taken as they are. "
    "[default: .smith/redteam/TIME]",
)
@device_option
@device_wait_option
@sandbox_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    tasks: tuple[str, ...],
    panel: str | None,
    names: tuple[str, ...],
    jobs: int,
    out: Path | None,
    device: str,
    device_wait: float,
    sandbox: str,
    as_json: bool,
) -> None:
    """Attack the grader: every known reward hack, and honest solutions beside them, on each task.

    \b
    Exit status 1 where a hack scored, an honest solution was refused, or the machine could not tell.
    """
    found = store(ctx)
    ones = _chosen(names)
    devices = machine_devices(device_wait)
    targets = _targets(found, tasks, panel, device, devices.machine)
    began = time.monotonic()
    folder = (out or found.layout.volatile / "redteam" / time.strftime("%Y%m%dT%H%M%S")).absolute()
    box = sandboxes.make(sandbox)
    environments = Environments(found.layout.environments, found.layout.logs)
    work = [Work(target, expected, one) for target, expected in targets for one in ones]
    tried: dict[tuple[str, str], Tried] = {}

    with progress("redteam", len(work)) as show:

        def one(item: Work) -> Tried:
            bundle, receipt = item.target.bundle, item.expected.receipt
            environment = environments.for_receipt(bundle.recipe, receipt)
            with devices.bench(found, box, receipt.device, purpose=f"redteam {bundle.id}") as bench:
                return attempt(item, bench, environment, folder, lambda text: None)

        for item, done in each(one, work, jobs):
            tried[item.target.bundle.id, item.one.name] = done
            verdict = done.verdict.value if done.verdict else "not applicable"
            rule = f" ({done.rule})" if done.rule else ""
            mark = "" if done.standing in (Standing.STOPPED, Standing.ACCEPTED, Standing.NOT_APPLICABLE) else " !"
            show(f"{item.target.bundle.id} {done.name}: {verdict}{rule}{mark}", 1)
    matrix = Matrix(
        sandbox=box.name,
        smith=__version__,
        seconds=round(time.monotonic() - began, 1),
        tasks=tuple(_attacked(target, ones, tried) for target, _ in targets),
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "matrix.md", markdown(matrix).encode())
    matrix.save(folder / "matrix.json")
    if as_json:
        print_json(document(matrix))
    else:
        _print(matrix, folder)
    ctx.exit(0 if matrix.held else EXIT_NO)


def _chosen(names: tuple[str, ...]) -> list[Hack | Control]:
    """The hacks and controls of these names; all without any. Raises :class:`BadInput` for an unknown one."""
    every: list[Hack | Control] = [*catalogue(), *CONTROLS]
    unknown = set(names) - {one.name for one in every}
    if unknown:
        raise BadInput(f"no hack or control {min(unknown)!r}", hint=f"one of: {', '.join(o.name for o in every)}")
    return [one for one in every if not names or one.name in names]


def _targets(
    found: Store, tasks: tuple[str, ...], panel: str | None, device: str, machine: Any
) -> list[tuple[Target, StoredReceipt]]:
    """Each task with the receipt that counts: the panel's own where a panel is named."""
    pinned = {task.id: task for task in load_panel(found.layout, panel).tasks} if panel else {}
    targets = []
    for task in choose_tasks(found, tasks, panel, False):
        bundle = found.load(task)
        if task in pinned and device == "auto":
            expected = pinned_receipt(found, pinned[task], next(iter(pinned[task].receipts)))
        else:
            expected = expected_receipt(found, bundle, device, machine)
        found.require_sources(bundle)
        targets.append((Target(found, bundle, expected.receipt), expected))
    return targets


def _attacked(target: Target, ones: list[Hack | Control], tried: dict[tuple[str, str], Tried]) -> Attacked:
    def of(kind: type) -> tuple[Tried, ...]:
        return tuple(tried[target.bundle.id, one.name] for one in ones if isinstance(one, kind))

    return Attacked(
        task=target.bundle.id,
        tree=target.bundle.tree,
        device=target.receipt.device,
        hacks=of(Hack),
        controls=of(Control),
    )


def _print(matrix: Matrix, folder: Path) -> None:
    for task in matrix.tasks:
        counts = ", ".join(f"{task.count(s)} {s.value.replace('_', ' ')}" for s in Standing if task.count(s))
        screen.print(Text(f"{task.task} on {task.device}: {counts}"))
        for one in (*task.hacks, *task.controls):
            if one.standing in (Standing.SCORED, Standing.REFUSED, Standing.UNDECIDED):
                why = f": {one.reasons[0]}" if one.reasons else ""
                screen.print(Text(f"  {one.standing.value}: {one.name}{why}"), soft_wrap=True)
    screen.print(Text(summary(matrix)))
    screen.print(Text(f"matrix: {folder / 'matrix.md'}"), soft_wrap=True)
