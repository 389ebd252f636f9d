"""Agents: one interface and a file per agent."""

from __future__ import annotations

from pathlib import Path

from smith.errors import BadInput
from smith.evaluate.agents.base import Agent, Desk, Ending, Workspace
from smith.evaluate.agents.nop import Nop
from smith.evaluate.agents.oracle import Oracle
from smith.evaluate.agents.patch import Patch
from smith.evaluate.agents.tools import Settings, Tools

NAMES = ("oracle", "nop", "patch", "tools")

__all__ = ["NAMES", "Agent", "Desk", "Ending", "Workspace", "make_agent"]


def make_agent(name: str, options: dict[str, str]) -> Agent:
    """The agent called ``name``. Raises :class:`BadInput` for one that does not exist or lacks its option."""
    if name == "oracle":
        return Oracle()
    if name == "nop":
        return Nop()
    if name == "patch":
        if "patches" not in options:
            raise BadInput("the agent 'patch' needs a folder of patches", hint="--patches DIR, files <task>.patch")
        return Patch(Path(options["patches"]))
    if name == "tools":
        return Tools(Settings.of(options))
    raise BadInput(f"no agent is called {name!r}", hint=f"there are: {', '.join(NAMES)}")
