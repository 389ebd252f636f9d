"""What is held out stays out: by lineage, in cards, in retrieval and in proposals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smith.errors import SmithError
from smith.freeze.lineages import lineage_of, lineages
from smith.freeze.panels import load_panel
from smith.paths import Layout


@dataclass(frozen=True)
class HeldOut:
    """The lineages of all tasks of panels with ``split = "held_out"``, each with the panel that says so."""

    lineages: Mapping[str, str]
    known: Mapping[str, str]

    @classmethod
    def of(cls, layout: Layout) -> HeldOut:
        """Read all panels. Raises :class:`smith.errors.RecordError` for lineages that cannot be read.

        A panel that does not load is the business of ``smith panel check``.
        """
        known, found = lineages(layout), dict[str, str]()
        for path in sorted(layout.panels.glob("*.toml")) if layout.panels.is_dir() else ():
            try:
                panel = load_panel(layout, path.stem)
            except SmithError:
                continue
            if panel.split == "held_out":
                for task in panel.tasks:
                    found.setdefault(lineage_of(known, task.id), panel.name)
        return cls(found, known)

    def forbids(self, task: str) -> str:
        """The panel that holds ``task`` or a relative of it out; empty where none does."""
        return self.lineages.get(lineage_of(self.known, task), "")
