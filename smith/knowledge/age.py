"""Whether a card has grown old: its range of the toolchain is left, or what it relies on upstream has gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from smith.errors import BadInput, SmithError
from smith.freeze.bundle import TASK_FILE, Store
from smith.git.objects import read_file
from smith.git.sources import has
from smith.knowledge.base import Known
from smith.records.card import Card
from smith.records.task import Source, TaskFile

_SYMBOL = re.compile(r"(?P<repo>[^\s:/]+/[^\s:/]+):(?P<path>[^\s:]+)(?:::(?P<name>\w+))?\Z")


def outside(card: Card, versions: Mapping[str, str]) -> Iterator[str]:
    """Each package whose version here is not in the card's range; packages that are not here say nothing.

    Raises :class:`BadInput` for a range that is none.
    """
    for package, text in sorted(card.applies_to.toolchain.items()):
        try:
            ranged = SpecifierSet(text)
            here = versions.get(package)
            if here is not None and not ranged.contains(here, prereleases=True):
                yield f"{package} {here} is not in {text}"
        except (InvalidSpecifier, InvalidVersion) as error:
            raise BadInput(
                f"{card.id}: {text!r} is no range of versions of {package}", hint="write it as >=3.4,<4"
            ) from error


@dataclass(frozen=True)
class Bases:
    """The newest frozen source of each upstream, of those that are here."""

    store: Store
    newest: Mapping[str, Source]
    by_task: Mapping[str, Source]

    @classmethod
    def of(cls, store: Store) -> Bases:
        """Read every bundle. One that cannot be read is left out; ``smith task verify`` says why."""
        by_task: dict[str, Source] = {}
        for task in store.ids():
            try:
                by_task[task] = TaskFile.load(store.layout.task(task) / TASK_FILE).metadata.smith.source
            except SmithError:
                continue
        newest: dict[str, Source] = {}
        for source in by_task.values():
            there = newest.get(source.repo)
            if has(store.data, source.base_tree) and (there is None or source.merged_at > there.merged_at):
                newest[source.repo] = source
        return cls(store, newest, by_task)

    def gone(self, known: Known) -> Iterator[str]:
        """Each symbol of a card that a newer source than those of its tasks lacks. Symbols of the form
        ``owner/name:path::function`` are looked for; nothing is said where no newer source is here."""
        for symbol in known.file.card.symbols:
            found = _SYMBOL.match(symbol)
            newest = self.newest.get(found["repo"]) if found else None
            if found is None or newest is None or not self._newer(newest, (use.task for use in known.uses)):
                continue
            text = read_file(self.store.scratch, newest.base_tree, found["path"])
            if text is None:
                yield f"{found['path']} is gone from {newest.repo} before #{newest.pr}"
            elif found["name"] and not re.search(rf"\b{found['name']}\b".encode(), text):
                yield f"{found['path']} of {newest.repo} has no {found['name']} before #{newest.pr}"

    def _newer(self, newest: Source, tasks: Iterable[str]) -> bool:
        own = [self.by_task[task].merged_at for task in tasks if task in self.by_task]
        return not own or newest.merged_at > max(own)
