"""The agent that does nothing: it must never solve anything."""

from __future__ import annotations

from smith.evaluate.agents.base import Ending, Workspace
from smith.records.attempt import Ended


class Nop:
    """Leaves the workspace as it is."""

    name = "nop"
    dialect = None

    def describe(self) -> dict[str, str]:
        """Nothing: smith's own version says it all."""
        return {}

    def run(self, workspace: Workspace) -> Ending:
        """Do nothing."""
        return Ending(Ended.SUBMITTED)
