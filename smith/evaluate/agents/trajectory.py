"""An agent's trajectory: a line a step while it works (``trajectory.jsonl``), and the whole as ATIF 1.8 at the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from smith.paths import write_atomically
from smith.records.base import to_json

LINES, ATIF = "trajectory.jsonl", "trajectory.json"


class Trajectory:
    """Steps in ATIF's layout. ``hide`` takes secrets out of what is written."""

    def __init__(self, folder: Path, session: str, agent: dict[str, Any], hide: Callable[[bytes], bytes]) -> None:
        self.steps: list[dict[str, Any]] = []
        self._folder, self._session, self._agent, self._hide = folder, session, agent, hide
        self._fd = os.open(folder / LINES, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def step(self, source: str, message: str, **more: Any) -> None:
        """Append a step, on disk too. ``source`` is ``system``, ``user`` or ``agent``."""
        step = {
            "step_id": len(self.steps) + 1,
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "source": source,
            "message": message,
            **{key: value for key, value in more.items() if value is not None},
        }
        self.steps.append(step)
        os.write(self._fd, self._hide(to_json(step)) + b"\n")

    def close(self, final: dict[str, Any], extra: dict[str, Any]) -> None:
        """Write the whole."""
        os.close(self._fd)
        document = {
            "schema_version": "ATIF-v1.8",
            "session_id": self._session,
            "agent": self._agent,
            "steps": self.steps,
            "final_metrics": {**final, "total_steps": len(self.steps)},
            "extra": extra,
        }
        write_atomically(self._folder / ATIF, self._hide(to_json(document, indent=1)) + b"\n", mode=0o600)
