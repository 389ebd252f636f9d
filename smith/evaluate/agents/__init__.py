"""Agents: one interface and a file per agent; command-line agents are described in TOML."""

from __future__ import annotations

from pathlib import Path

from smith.errors import BadInput
from smith.evaluate.agents.base import Agent, Desk, Ending, Workspace
from smith.evaluate.agents.commandline import CommandLine, agent_file, shipped
from smith.evaluate.agents.nop import Nop
from smith.evaluate.agents.oracle import Oracle
from smith.evaluate.agents.patch import Patch
from smith.evaluate.agents.replay import Replay
from smith.evaluate.agents.settings import Settings
from smith.evaluate.agents.tools import Tools

REPLAY = "replay"
BUILT_IN = ("oracle", "nop", "patch", "tools", REPLAY)

__all__ = ["BUILT_IN", "REPLAY", "Agent", "Desk", "Ending", "Workspace", "agent_names", "make_agent"]


def agent_names() -> tuple[str, ...]:
    """Every agent that has a name."""
    return (*BUILT_IN, *shipped())


def make_agent(name: str, options: dict[str, str]) -> Agent:
    """The agent called ``name``, or described by the file ``name``.

    Raises :class:`BadInput` for one that does not exist or lacks its option, and
    :class:`smith.errors.Unavailable` for a program that is not installed.
    """
    if name == "oracle":
        return Oracle()
    if name == "nop":
        return Nop()
    if name == "patch":
        if "patches" not in options:
            raise BadInput("the agent 'patch' needs a folder of patches", hint="--patches DIR, files <task>.patch")
        return Patch(Path(options["patches"]))
    if name == REPLAY:
        return Replay(make_agent(options["replayed_agent"], options), options["replay"])
    if name == "tools":
        return Tools(Settings.of(options))
    file = agent_file(Path(options["agent_file"])) if "agent_file" in options else shipped().get(name)
    if file is None:
        raise BadInput(f"no agent is called {name!r}", hint=f"there are: {', '.join(agent_names())}, or FILE.toml")
    made = CommandLine(file, options.get("program_path"))
    made.require()
    return made
