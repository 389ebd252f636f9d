"""Lineages of tasks: which pull requests give each other away, so that no split may part them.

A lineage can grow while upstream goes on, so it is no part of a bundle, whose identity must not change with it. It lies
beside the bundles, in ``tasks/lineages.json``.
"""

from __future__ import annotations

from collections.abc import Mapping

from smith.paths import Layout, locked
from smith.records.lineages import Lineages
from smith.records.task import plain_id


def lineages(layout: Layout) -> Mapping[str, str]:
    """Task id to lineage (``owner/name#N``), as far as it is known. Raises :class:`smith.errors.RecordError`."""
    path = layout.lineages
    return Lineages.load(path).tasks if path.is_file() else {}


def lineage_of(known: Mapping[str, str], task_id: str) -> str:
    """The lineage of a task by what :func:`lineages` gave. All variants of a pull request are of one, whichever of them
    it is known of; a task of which none is known is a lineage of its own, named by its plain id."""
    plain = plain_id(task_id)
    for one in (task_id, plain):
        if one in known:
            return known[one]
    return next((lineage for one, lineage in sorted(known.items()) if plain_id(one) == plain), plain)


def remember_lineages(layout: Layout, found: Mapping[str, str]) -> None:
    """Add to what is known, and replace what is known otherwise. Writes nothing where nothing is new.

    Raises :class:`smith.errors.RecordError` where the file is broken.
    """
    with locked(layout.volatile / "locks" / "lineages.lock"):
        known = dict(lineages(layout))
        if any(known.get(task) != lineage for task, lineage in found.items()):
            Lineages(tasks=dict(sorted({**known, **found}.items()))).save(layout.lineages)
