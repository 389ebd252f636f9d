"""Agents that are somebody's command line, described by a few lines of TOML."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from smith.records.base import Document

PLACES = (
    "program",
    "python",
    "base_url",
    "root_url",
    "token",
    "model",
    "prompt",
    "home",
    "source",
    "max_output_tokens",
)
"""What stands for what: ``{program}`` the program's path, ``{python}`` the interpreter that a Python program runs in,
``{base_url}`` the gateway with ``/v1``, ``{root_url}`` without, ``{source}`` the repository, ``{home}`` the home."""

PLACE = re.compile(r"\{(" + "|".join(PLACES) + r")\}")


def _inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError("is no path below the home folder")
    return path


Word = Annotated[str, StringConstraints(min_length=1)]
HomePath = Annotated[str, AfterValidator(_inside)]


class AgentFile(Document):
    """``NAME.toml``: how a command-line agent is found, started and read."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=60)
    description: str = ""
    dialect: Literal["chat", "responses", "messages"]
    """How it asks its model."""
    program: Word
    """Looked up on the path."""
    install: Word
    """How a person installs it."""
    version: tuple[Word, ...] = ("{program}", "--version")
    command: tuple[Word, ...]
    env: dict[str, str] = {}
    unset: tuple[Word, ...] = ()
    """Variables of the task's environment that the program must not see."""
    files: dict[HomePath, str] = {}
    """Files that are written below the home folder first."""
    trajectory: tuple[HomePath, ...] = ()
    """Files and folders below the home folder that are kept as evidence."""
    grace_s: float = Field(default=20.0, ge=0, le=600)
    """Seconds in which it may end by itself once no further call can succeed."""

    @model_validator(mode="after")
    def _is_told_the_task(self) -> AgentFile:
        if not any("{prompt}" in text for text in (*self.command, *self.env.values(), *self.files.values())):
            raise ValueError("nothing of it holds {prompt}: the agent would never hear of its task")
        return self

    def filled(self, text: str, places: dict[str, str]) -> str:
        """``text`` with what the places stand for; once, so that a prompt may hold braces."""
        return PLACE.sub(lambda found: places[found.group(1)], text)
