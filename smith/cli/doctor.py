"""``smith doctor``."""

from __future__ import annotations

import platform
import shutil
from dataclasses import asdict
from typing import Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from smith import __version__
from smith.cli.common import json_option, print_json, screen
from smith.device.probe import DeviceFact, probe
from smith.evaluate.agents.commandline import shipped
from smith.gpus.base import Gpu, Readings
from smith.gpus.machine import Machine


@click.command("doctor")
@json_option
def command(as_json: bool) -> None:
    """Say what this machine can prove, and what is missing."""
    machine = Machine()
    facts = probe(machine)
    gpus = [gpu for found in machine.all().values() for gpu in found.gpus]
    if as_json:
        document = {"smith": __version__, "python": platform.python_version(), "facts": [_fact(f) for f in facts]}
        print_json({**document, "gpus": [_gpu(gpu) for gpu in gpus], "agents": _agents()})
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
    for fact in facts:
        if "proved" in fact.details:
            screen.print(Text(f"{fact.name}: {fact.details['proved']}"), soft_wrap=True)
    if gpus:
        screen.print(_table(gpus))
    for agent in _agents():
        here = agent["program"] or f"not installed ({agent['install']})"
        screen.print(Text(f"agent {agent['name']}: {here}"), soft_wrap=True)


def _agents() -> list[dict[str, str | None]]:
    """The command-line agents that smith knows, and where their programs are on the path; null where they are not."""
    return [
        {"name": file.name, "program": shutil.which(file.program), "install": file.install}
        for file in shipped().values()
    ]


def _fact(fact: DeviceFact) -> dict[str, Any]:
    return {"name": fact.name, "available": fact.available, "reason": fact.reason, "details": dict(fact.details)}


def _gpu(gpu: Gpu) -> dict[str, Any]:
    """One GPU as JSON; null where its driver does not say."""
    return {
        "device": gpu.device,
        "name": gpu.name,
        "card": gpu.card,
        "uuid": gpu.uuid,
        "index": gpu.index,
        "driver": gpu.driver,
        "toolkit": gpu.toolkit,
        "usable": not gpu.problem,
        "problem": gpu.problem,
        "now": asdict(gpu.readings),
        "processes": [{"pid": o.pid, "name": o.name, "memory_bytes": o.memory_bytes} for o in gpu.occupants],
    }


def _table(gpus: list[Gpu]) -> Table:
    """GPUs for the terminal."""
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("device", "GPU", "driver", "now", "in use by"):
        shown.add_column(name, overflow="fold")
    for gpu in gpus:
        using = ", ".join(map(str, gpu.occupants)) or gpu.problem or "nobody"
        driver = f"{gpu.driver}, {'ROCm' if gpu.kind == 'rocm' else 'CUDA'} {gpu.toolkit or 'unknown'}"
        shown.add_row(*map(Text, (gpu.device, f"{gpu.name} {gpu.card}".strip(), driver, _now(gpu.readings), using)))
    return shown


def _now(now: Readings) -> str:
    said = [
        f"{now.busy_percent} % busy" if now.busy_percent is not None else "",
        f"{now.temperature_c:.0f} °C" if now.temperature_c is not None else "",
        f"{now.power_w:.0f} W" if now.power_w is not None else "",
        f"of {now.power_limit_w:.0f} W" if now.power_limit_w is not None else "",
        f"{now.clock_mhz} MHz" if now.clock_mhz is not None else "",
        now.policy,
    ]
    return ", ".join(part for part in said if part)
