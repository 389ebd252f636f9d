"""What the commands share: options, output, progress."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from smith.errors import BadInput
from smith.freeze.bundle import Store
from smith.gpus.lease import WAIT_S
from smith.gpus.machine import Machine
from smith.grade.devices import Devices
from smith.paths import Layout, require_root
from smith.records.config import Config

F = TypeVar("F", bound=Callable[..., Any])

console = Console(stderr=True, highlight=False)
"""For people: progress and logs, on standard error."""

screen = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
"""For results: standard output; wide where that is no terminal, so that a log or a pipe loses nothing."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output.")
sandbox_option = click.option(
    "--sandbox", default="bubblewrap", show_default=True, help="Where tests run: bubblewrap, or host (no isolation)."
)

targets_option = click.option(
    "--targets", help="Compile what submissions launch for these GPUs too, e.g. gfx942,gfx950; no verdict hangs on it."
)


def device_option(function: F) -> F:
    """``--device``, checked later against what smith knows."""
    return click.option(
        "--device",
        default="auto",
        show_default=True,
        help="interpreter[:gfx942], cpu, rocm[:gfx942], cuda[:sm_90], or auto: the first that the task and this "
        "machine have.",
    )(function)


def device_wait_option(function: F) -> F:
    """``--device-wait``: how long to wait for a GPU that is in use."""
    return click.option(
        "--device-wait",
        type=click.FloatRange(min=0),
        default=WAIT_S,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for a GPU that others use.",
    )(function)


def machine_devices(wait_s: float = WAIT_S) -> Devices:
    """The devices of this machine. Where no bar shows what is waited for, lines on standard error do."""

    def say(text: str) -> None:
        if not console.is_terminal:
            click.echo(text, err=True)

    return Devices(Machine(), wait_s, say=say)


def layout(ctx: click.Context) -> Layout:
    """The data repository that this call is about. Raises :class:`BadInput` where there is none."""
    start = ctx.find_root().obj
    assert isinstance(start, Path)
    if not start.is_dir():
        raise BadInput(f"{start}: no such folder")
    found = require_root(start)
    Config.load(found.config)
    return found


def store(ctx: click.Context) -> Store:
    """The bundles of the data repository."""
    return Store(layout(ctx))


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=True) + "\n")


@contextlib.contextmanager
def progress(description: str, total: int | None) -> Iterator[Callable[[str | None, int], None]]:
    """A progress bar on standard error; where that is no terminal, a line for each thing done.

    Gives a function ``step(text, advance)``: sets the text where it is given, and advances.
    """
    if not console.is_terminal:

        def line(text: str | None, advance: int) -> None:
            if text and advance:
                click.echo(f"{description}: {text}", err=True)

        yield line
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=total)

        def step(text: str | None, advance: int) -> None:
            bar.update(task, advance=advance, description=description if text is None else f"{description}: {text}")

        yield step


def choose_tasks(found: Store, tasks: tuple[str, ...], panel: str | None, everything: bool) -> list[str]:
    """The task ids meant by arguments, by ``--panel`` or by ``--all``. Raises :class:`BadInput` unless it is one."""
    if bool(tasks) + bool(panel) + everything != 1:
        raise BadInput("give tasks, a panel with --panel, or --all", hint="e.g. smith validate --all")
    if panel is not None:
        from smith.freeze.panels import load_panel

        return [t.id for t in load_panel(found.layout, panel).tasks]
    if everything:
        ids = found.ids()
        if not ids:
            raise BadInput(f"no task in {found.layout.tasks}", hint="make one with: smith freeze")
        return ids
    return list(dict.fromkeys(tasks))
