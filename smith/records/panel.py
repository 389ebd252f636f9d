"""A panel: tasks pinned by tree, with the receipts that count."""

from __future__ import annotations

from pydantic import model_validator

from smith.records.base import Document, Name, Oid, Record, TaskId


class PanelTask(Record):
    """One pinned task."""

    id: TaskId
    tree: Oid
    receipts: dict[str, Oid]
    """Device name to git blob id of the receipt that gives the expectations."""


class Panel(Document):
    """A named set of pinned tasks."""

    name: Name
    description: str = ""
    tasks: tuple[PanelTask, ...]

    @model_validator(mode="after")
    def _unique(self) -> Panel:
        ids = [t.id for t in self.tasks]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise ValueError(f"a task may be listed once only: {', '.join(twice)}")
        return self
