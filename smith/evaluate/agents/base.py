"""What an agent is: something that changes a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from smith.freeze.bundle import Bundle, Store
from smith.git.trees import materialise
from smith.records.attempt import Ended


@dataclass(frozen=True)
class Workspace:
    """The frozen source in a folder of its own, which the agent may change as it likes.

    ``bundle`` gives the instruction; only the built-in reference agents look at anything else of it.
    """

    folder: Path
    bundle: Bundle
    store: Store

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

    name: str

    def run(self, workspace: Workspace) -> Ending:
        """Work on the task until done."""
        ...
