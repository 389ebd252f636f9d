"""The seal of an attempt: what its evidence was when it was finished."""

from __future__ import annotations

from smith.records.base import Document, TaskId


class Seal(Document):
    """Every file of an attempt's evidence by its path, with the SHA-256 of its bytes; a link by that of its target."""

    run: str
    task: TaskId
    attempt: int
    files: dict[str, str]
