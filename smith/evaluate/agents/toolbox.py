"""The tools of the agent ``tools``: what the model is told of them, and how each is done in the sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smith.harness.stage import Stage
from smith.records.base import to_json
from smith.sandbox.base import Command, Limits

SHOWN_CHARACTERS = 16_000
"""Of one output."""
COMMAND_S, LONGEST_COMMAND_S = 120.0, 1200.0
MARGIN_S = 30.0
"""The host's limit is longer than the one inside, which ends a command in an orderly way."""


def _tool(name: str, about: str, required: tuple[str, ...], **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
TOOLS = [
    _tool(
        "bash",
        "Run a command with bash in the repository's root. Each call is a new shell: neither its directory nor its "
        "variables stay, files do. There is no network. A long output is cut in the middle.",
        ("command",),
        command=_TEXT,
        timeout_s={
            "type": "number",
            "description": f"seconds, {COMMAND_S:g} by default, {LONGEST_COMMAND_S:g} at most",
        },
    ),
    _tool(
        "read",
        "Read a file with line numbers, or list a folder. Give first and last to read a part of a long file.",
        ("path",),
        path=_TEXT,
        first=_NUMBER,
        last=_NUMBER,
    ),
    _tool("write", "Write a file whole; folders are made.", ("path", "content"), path=_TEXT, content=_TEXT),
    _tool(
        "edit",
        "Replace a text in a file. The old text must occur exactly once, unless all is true.",
        ("path", "old", "new"),
        path=_TEXT,
        old=_TEXT,
        new=_TEXT,
        all={"type": "boolean"},
    ),
    _tool("submit", "Hand in the repository as it now is. The work ends with it.", ()),
]
_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


def fault_of(name: str, given: Mapping[str, Any]) -> str:
    """What is wrong with a call; empty where nothing is."""
    known = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    if name not in known:
        return f"there is no tool {name!r}; there are {', '.join(known)}"
    parameters = known[name]
    for key in parameters["required"]:
        if key not in given:
            return f"{name} needs {key}"
    for key, value in given.items():
        if key not in parameters["properties"]:
            return f"{name} knows no {key}"
        kind = parameters["properties"][key]["type"]
        wrong = isinstance(value, bool) != (kind == "boolean") or not isinstance(value, _KINDS[kind])
        if value is not None and wrong:
            return f"{key} of {name} must be a {kind}"
    return ""


@dataclass(frozen=True)
class Toolbox:
    """Does what is asked, each action in a sandbox of its own around the same workspace, home and scratch space."""

    stage: Stage
    limits: Limits

    def use(self, name: str, given: Mapping[str, Any], left_s: float) -> str:
        """What came of an action, as text for the model. ``left_s`` bounds it, in seconds."""
        asked = dict(given)
        if name == "bash":
            wanted = float(asked.get("timeout_s") or COMMAND_S)
            asked["timeout_s"] = max(1.0, min(wanted, LONGEST_COMMAND_S, left_s))
        wall_s = float(asked.get("timeout_s", COMMAND_S)) + MARGIN_S
        stage = self.stage
        request = {"tool": name, "given": asked, "most": SHOWN_CHARACTERS, "scratch": stage.tmp}
        ended = stage.sandbox.run(
            Command(
                stage.module("act"),
                stage.source,
                Limits(
                    wall_s=wall_s,
                    memory_bytes=self.limits.memory_bytes,
                    processes=self.limits.processes,
                    file_bytes=self.limits.file_bytes,
                ),
                env=agent_env(stage),
                binds=stage.binds(source_writable=True, scratch_on_disk=True),
                input=to_json(request),
            )
        )
        try:
            said = json.loads(ended.stdout.data)
        except ValueError:
            said = None
        if isinstance(said, str):
            return said
        return f"[the sandbox ended it: {ended.ending}]" if not ended.ok else "[no answer came from the sandbox]"


def agent_env(stage: Stage) -> dict[str, str]:
    """What an agent's programs see: as tests do, and pytest with the device's plug-in, so that kernels run."""
    env = stage.env()
    if stage.plugin:
        env["PYTEST_PLUGINS"] = ",".join(filter(None, (env.get("PYTEST_PLUGINS"), stage.plugin)))
    return {**env, "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb"}
