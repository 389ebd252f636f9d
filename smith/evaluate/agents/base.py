"""What an agent is: something that changes a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from smith.freeze.bundle import Bundle, Store
from smith.gateway.dialects import Dialect
from smith.gateway.server import Gateway
from smith.git.trees import materialise
from smith.harness.stage import Stage
from smith.records.attempt import Ended


@dataclass(frozen=True)
class Desk:
    """What an agent that asks a model has besides its files."""

    stage: Stage
    """The sandbox around the workspace, and the task's environment in it."""
    gateway: Gateway
    evidence: Path
    """The folder of the attempt, for trajectory and logs."""
    timeout_s: float
    """For all of its work, in seconds on the wall."""


@dataclass(frozen=True)
class Workspace:
    """The frozen source in a folder of its own, which the agent may change as it likes.

    ``bundle`` gives the instruction; only the built-in reference agents look at anything else of it.
    """

    folder: Path
    bundle: Bundle
    store: Store
    desk: Desk | None = None
    """There for agents with a dialect only."""
    advice: str = ""
    """Cards of the knowledge base, as :mod:`smith.evaluate.advice` renders them."""

    @property
    def instruction(self) -> str:
        """All that an agent is told of the task, the same for every agent."""
        parts = (self.bundle.instruction.strip(), self.advice.strip())
        return "\n\n---\n\n".join(part for part in parts if part)

    def put(self, tree: str) -> None:
        """Make the workspace hold exactly ``tree``."""
        from smith.paths import remove_tree

        for child in self.folder.iterdir():
            remove_tree(child)
        materialise(self.store.scratch, tree, self.folder)


@dataclass(frozen=True)
class Ending:
    """How an agent ended. What it cost is in the ledger, not in its word."""

    ended: Ended
    detail: str = ""


class Agent(Protocol):
    """Changes ``workspace.folder``; the harness takes the patch from there afterwards."""

    @property
    def name(self) -> str:
        """As people choose it."""

    @property
    def dialect(self) -> Dialect | None:
        """How it asks its model; None for one that asks none."""

    def describe(self) -> dict[str, str]:
        """What a receipt says of it: versions, digests of prompts, settings."""
        ...

    def run(self, workspace: Workspace) -> Ending:
        """Work on the task until done."""
        ...
