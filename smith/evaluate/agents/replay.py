"""The agent of an earlier run once more, on the answers that its model gave then."""

from __future__ import annotations

from smith.evaluate.agents.base import Agent, Ending, Workspace
from smith.gateway.dialects import Dialect


class Replay:
    """Works as ``inner`` does; its gateway gives the recorded answers of the run ``of``."""

    name = "replay"

    def __init__(self, inner: Agent, of: str) -> None:
        self._inner, self._of = inner, of

    @property
    def dialect(self) -> Dialect | None:
        """As of the agent that is replayed."""
        return self._inner.dialect

    def describe(self) -> dict[str, str]:
        """What a receipt says of it: the same as of the agent, and of which run."""
        return {**self._inner.describe(), "replayed": self._inner.name, "of": self._of}

    def run(self, workspace: Workspace) -> Ending:
        """Work as the agent does."""
        return self._inner.run(workspace)
