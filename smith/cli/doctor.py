"""``smith doctor``."""

from __future__ import annotations

import platform
from typing import Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from smith import __version__
from smith.cli.common import json_option, print_json, screen
from smith.device.probe import DeviceFact, probe


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """Say what this machine can prove, and what is missing."""
    facts = probe()
    if as_json:
        print_json({"smith": __version__, "python": platform.python_version(), "facts": [_fact(f) for f in facts]})
        return
    screen.print(
        Text(f"smith {__version__}, Python {platform.python_version()}, {platform.platform()}"), soft_wrap=True
    )
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("what", "here", "why"):
        shown.add_column(name, overflow="fold")
    for fact in facts:
        style = "green" if fact.available else "yellow"
        shown.add_row(Text(fact.name), Text("yes" if fact.available else "no", style=style), Text(fact.reason))
    screen.print(shown)


def _fact(fact: DeviceFact) -> dict[str, Any]:
    return {"name": fact.name, "available": fact.available, "reason": fact.reason, "details": dict(fact.details)}
