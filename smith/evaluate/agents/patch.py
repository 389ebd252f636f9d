"""The agent that hands in patches made elsewhere."""

from __future__ import annotations

from pathlib import Path

from smith.errors import BadInput, PatchError
from smith.evaluate.agents.base import Ending, Workspace
from smith.git.patches import apply
from smith.records.attempt import Ended


class Patch:
    """Applies ``<folder>/<task>.patch``; a task without one is stopped with an empty submission."""

    name = "patch"
    dialect = None

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise BadInput(f"{folder}: no such folder", hint="a folder with files <task>.patch")
        self.folder = folder

    def describe(self) -> dict[str, str]:
        """Nothing: smith's own version says it all."""
        return {}

    def run(self, workspace: Workspace) -> Ending:
        """Apply the task's patch, or say why not."""
        path = self.folder / f"{workspace.bundle.id}.patch"
        if not path.is_file():
            return Ending(Ended.STOPPED, f"no {path.name} among the patches")
        try:
            patch = path.read_bytes()
            # Models' patches often come without their last end of line, which git apply takes for a cut-off patch.
            whole = patch if not patch or patch.endswith(b"\n") else patch + b"\n"
            workspace.put(apply(workspace.store.scratch, workspace.bundle.spec.source.tree, whole))
        except PatchError as error:
            return Ending(Ended.STOPPED, f"{path.name}: {error}")
        return Ending(Ended.SUBMITTED)
