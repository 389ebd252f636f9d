"""The agent that knows the reference patch: it must solve everything."""

from __future__ import annotations

from smith.evaluate.agents.base import Ending, Workspace
from smith.git.patches import apply
from smith.records.attempt import Ended


class Oracle:
    """Puts the reference solution into the workspace."""

    name = "oracle"
    dialect = None

    def describe(self) -> dict[str, str]:
        """Nothing: smith's own version says it all."""
        return {}

    def run(self, workspace: Workspace) -> Ending:
        """Apply the reference patch."""
        bundle = workspace.bundle
        workspace.put(apply(workspace.store.scratch, bundle.spec.source.tree, bundle.reference))
        return Ending(Ended.SUBMITTED)
