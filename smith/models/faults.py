"""What an endpoint's error document says."""

from __future__ import annotations

from typing import Any


def message_of(data: Any) -> str:
    """What went wrong, in one short line; empty where the document does not tell."""
    error = data.get("error", data) if isinstance(data, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return " ".join(said.split())[:300] if isinstance(said, str) else ""


def code_of(data: Any) -> str:
    """The endpoint's own names for the fault, where it gives any."""
    error = data.get("error") if isinstance(data, dict) else None
    found = [error.get(key) for key in ("code", "type")] if isinstance(error, dict) else []
    return " ".join(one for one in found if isinstance(one, str))
