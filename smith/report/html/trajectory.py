"""An attempt's trajectory, step by step, from a file in the Agent Trajectory Interchange Format (ATIF)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = "trajectory.json"
STEPS = 200
CHARACTERS = 4000
"""Of one message that are shown."""


@dataclass(frozen=True)
class Step:
    """One step: who, what was said, what was called, what came back."""

    source: str
    message: str
    calls: tuple[tuple[str, str], ...]
    results: tuple[str, ...]


def steps_of(folder: Path) -> tuple[Step, ...]:
    """The first steps of an attempt; none where there is no trajectory or it cannot be read."""
    try:
        document = json.loads((folder / FILE).read_bytes())
        return tuple(_step(step) for step in document["steps"][:STEPS])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def _step(step: dict[str, Any]) -> Step:
    calls = tuple((_text(c.get("function_name")), _text(c.get("arguments"))) for c in step.get("tool_calls") or ())
    results = tuple(_text(r.get("content")) for r in (step.get("observation") or {}).get("results") or ())
    return Step(_text(step.get("source")), _text(step.get("message")), calls, results)


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = "\n".join(_text(part.get("text") if isinstance(part, dict) else part) for part in value)
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, indent=1, ensure_ascii=False)
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}\n[{len(text) - CHARACTERS} characters more]"
