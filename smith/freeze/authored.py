"""What became of authoring: the notes beside the answers, which say what bundle came of which."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from smith.errors import RecordError
from smith.paths import Layout
from smith.records.authoring import Authored

NOTE = "accepted.json"


def notes(layout: Layout, task_id: str) -> Iterator[Authored]:
    """Every accepted authoring of a task. Broken notes are left out: they only spare work."""
    for path in sorted((layout.authoring / task_id).glob(f"*/*/{NOTE}")):
        with contextlib.suppress(RecordError):
            yield Authored.load(path)


def came_of(layout: Layout, task_id: str, before: str, now: str) -> bool:
    """Whether the bundle ``now`` was made from the bundle ``before`` by authoring, in one step or several."""
    steps = {note.tree: note.before for note in notes(layout, task_id)}
    seen: set[str] = set()
    while now in steps and now not in seen:
        seen.add(now)
        now = steps[now]
        if now == before:
            return True
    return False
