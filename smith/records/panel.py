"""A panel: tasks pinned by tree, with the receipts that count."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from smith.records.base import Document, Name, Oid, Record, TaskId
from smith.records.policy import Policy


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
    revision: int = Field(default=1, ge=1)
    """Grows whenever what is pinned changes: results of different revisions are not compared."""
    split: Literal["train", "held_out"] | None = None
    """The side of a split that the panel is; no lineage may lie on both."""
    policy: Policy | None = Field(default=None, exclude_if=lambda policy: policy is None)
    """What is asked of every receipt that is pinned besides being valid, and of submissions."""
    tasks: tuple[PanelTask, ...]

    @property
    def sanitize(self) -> bool:
        """Whether a submission must be clean under the sanitizer too."""
        return self.policy is not None and self.policy.sanitize

    @model_validator(mode="before")
    @classmethod
    def _sanitize_in_policy(cls, data: Any) -> Any:
        """Panels of earlier versions have ``sanitize`` beside their policy."""
        if not isinstance(data, dict) or "sanitize" not in data:
            return data
        rest = {key: value for key, value in data.items() if key != "sanitize"}
        policy = rest.get("policy") or {}
        if not isinstance(policy, dict) or "sanitize" in policy:
            return data  # which is no panel: the key is unknown
        return {**rest, "policy": {**policy, "sanitize": data["sanitize"]}}

    @model_validator(mode="after")
    def _unique(self) -> Panel:
        ids = [t.id for t in self.tasks]
        twice = sorted({i for i in ids if ids.count(i) > 1})
        if twice:
            raise ValueError(f"a task may be listed once only: {', '.join(twice)}")
        return self
