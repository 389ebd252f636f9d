"""How the agent ``tools`` works."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smith.errors import BadInput

STEPS, CONTEXT_TOKENS = 120, 120_000
SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
)
"""What of a model's sampling may be set; what is not set is the model's own."""


@dataclass(frozen=True)
class Settings:
    """How the agent works; all of it is recorded."""

    steps: int = STEPS
    context_tokens: int = CONTEXT_TOKENS
    sampling: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Settings:
        """From a run's options. Raises :class:`BadInput`."""
        sampling: dict[str, Any] = {}
        for key, value in options.items():
            if not key.startswith("sampling."):
                continue
            name = key.removeprefix("sampling.")
            if name not in SAMPLING:
                raise BadInput(f"no sampling setting is called {name!r}", hint=f"there are: {', '.join(SAMPLING)}")
            try:
                sampling[name] = value if name == "reasoning_effort" else json.loads(value)
            except ValueError:
                raise BadInput(f"{name}={value}: is no number") from None
            if name != "reasoning_effort" and (
                isinstance(sampling[name], bool) or not isinstance(sampling[name], int | float)
            ):
                raise BadInput(f"{name}={value}: is no number")
        return cls(int(options.get("steps", STEPS)), int(options.get("context_tokens", CONTEXT_TOKENS)), sampling)
