"""Lineages of tasks: which pull requests give each other away, so that no split may part them.

A lineage can grow while upstream goes on, so it is no part of a bundle, whose identity must not change with it. It lies
beside the bundles, in ``tasks/lineages.json``.
"""

from __future__ import annotations

from collections.abc import Mapping

from smith.paths import Layout, locked
from smith.records.lineages import Lineages


def lineages(layout: Layout) -> Mapping[str, str]:
    """Task id to lineage (``owner/name#N``), as far as it is known. Raises :class:`smith.errors.RecordError`."""
    path = layout.lineages
    return Lineages.load(path).tasks if path.is_file() else {}


def remember_lineages(layout: Layout, found: Mapping[str, str]) -> None:
    """Add to what is known, and replace what is known otherwise. Writes nothing where nothing is new.

    Raises :class:`smith.errors.RecordError` where the file is broken.
    """
    with locked(layout.volatile / "locks" / "lineages.lock"):
        known = dict(lineages(layout))
        if any(known.get(task) != lineage for task, lineage in found.items()):
            Lineages(tasks=dict(sorted({**known, **found}.items()))).save(layout.lineages)
