"""Lineages of tasks, beside the bundles."""

from __future__ import annotations

from smith.records.base import Document, TaskId


class Lineages(Document):
    """Which lineage each task is of, as far as it is known."""

    tasks: dict[TaskId, str]
    """``owner/name#N``, N being the smallest number of a pull request in it."""
