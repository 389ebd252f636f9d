"""The agent that knows the reference patch: it must solve everything."""

from __future__ import annotations

from smith.evaluate.agents.base import Ending, Workspace
from smith.git.patches import apply
from smith.records.attempt import Ended


class Oracle:
    """Puts the reference solution into the workspace."""

    name = "oracle"

    def run(self, workspace: Workspace) -> Ending:
        """Apply the reference patch."""
        bundle = workspace.bundle
        workspace.put(apply(workspace.store.scratch, bundle.spec.source.tree, bundle.reference))
        return Ending(Ended.SUBMITTED)
