"""What must hold of a design before anything is run: evidence, wording, leakage, interface, extra tests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smith.author import extra_tests
from smith.author.compose import Staged, sections_of, test_path
from smith.author.documents import Documents
from smith.freeze.bundle import Bundle, Store
from smith.freeze.instruction import code_like, names_in
from smith.freeze.interface import find_interface
from smith.freeze.leakage import SourceScan, instruction_leaks
from smith.freeze.modules import LARGEST, World
from smith.freeze.overlap import Addition, added_lines, squeezed
from smith.freeze.retell import Secret
from smith.freeze.study import files_of
from smith.grade.trial import base_tree, reference_tree
from smith.mine.blobs import Blobs
from smith.records.authoring import Design
from smith.records.base import Reason
from smith.records.task import InterfaceItem

_POINTS_AWAY = re.compile(
    r"https?://|(?<![\w&])#\d+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,40}\b|[Pp]ull [Rr]equest|\bPR\b"
)
_MOST_WORDS = 1500
_EXCERPT = 120


def check(store: Store, bundle: Bundle, documents: Documents, design: Design, staged: Staged) -> list[Reason]:
    """Every reason why a staged design may not stand; none where all is well."""
    quotes = (quote for requirement in design.requirements for quote in requirement.evidence)
    found = [Reason(code="evidence", detail=fault) for fault in documents.lacking(quotes)]
    found += [Reason(code="instruction", detail=fault) for fault in _wording(bundle, design, staged)]
    with Blobs(store.scratch, largest=LARGEST) as blobs:
        found += _Reading(store, bundle, staged, design, blobs).reasons()
    return found


def _wording(bundle: Bundle, design: Design, staged: Staged) -> Iterator[str]:
    told = staged.bundle.instruction
    if sections_of(told) != sections_of(bundle.instruction):
        yield "the sections of the instruction would change: no heading of the second level, and every fence closed"
    if any("\n" in requirement.statement for requirement in design.requirements):
        yield "a requirement is one line"
    if any(not c.isprintable() and c not in "\n\t" for c in staged.authored):
        yield "it holds characters that cannot be shown"
    if len(staged.authored.split()) > _MOST_WORDS:
        yield f"it has more than {_MOST_WORDS} words"
    for line in staged.authored.splitlines():
        if away := _POINTS_AWAY.search(line):
            yield f"it points away from the problem ({away[0]}): {line.strip()[:_EXCERPT]}"


class _Reading:
    """The staged bundle as it is read: start, reference and hidden tests."""

    def __init__(self, store: Store, bundle: Bundle, staged: Staged, design: Design, blobs: Blobs) -> None:
        self.staged, self.design = staged, design
        self.made = staged.bundle
        self.hidden = files_of(store.scratch, store.hidden_tests(self.made))
        start = files_of(store.scratch, bundle.spec.source.tree)
        self.before = World(blobs, files_of(store.scratch, base_tree(store, self.made)))
        self.after = World(blobs, files_of(store.scratch, reference_tree(store, self.made)))
        added = added_lines(bundle.reference)
        seen = World(blobs, start)
        self.addition = Addition(added, {path: seen.text(path) for path in added if path in start})
        self.files = [*self.made.selection.files, *self.made.selection.authored]
        self.tests = Addition(
            {path: tuple(self.after.text(path).splitlines()) for path in self.files},
            {path: seen.text(path) for path in self.files if path in start},
        )
        told = staged.authored
        asked = [n for n in self.addition.identifiers if code_like(n) and re.search(rf"\b{re.escape(n)}\b", told)]
        known = SourceScan(blobs, start, self.addition, asked).words if asked else set()
        named = frozenset(name for item in bundle.spec.interface for name in names_in(item))
        self.secret = Secret(self.addition, self.tests, names=frozenset(asked) - known, named=named)

    def reasons(self) -> Iterator[Reason]:
        for fault in self._leaks():
            yield Reason(code="answer_in_sight", detail=fault)
        for fault in self._interface():
            yield Reason(code="unspecified_interface", detail=fault)
        for fault in self._extra():
            yield Reason(code="extra_test", detail=fault)

    def _leaks(self) -> Iterator[str]:
        """What the instruction gives away. The sections after it passed this scan when the task was frozen."""
        sections = sections_of(self.made.instruction)
        for leak in instruction_leaks(self.made.instruction, self.addition, self.tests, allowed=sections):
            yield f"the instruction repeats the solution or a test: {leak.excerpt}"
        for line in self.staged.authored.splitlines():
            if line.strip() and self.secret.gives_away(line):
                yield f"the instruction names or repeats what only the solution has: {line.strip()[:_EXCERPT]}"

    def _interface(self) -> Iterator[str]:
        """What hidden tests use and the instruction does not name, of upstream's tests and of the extra ones."""
        interface = find_interface(self.before, self.after, self.files, self.hidden, self.addition.lines)
        items = {(i.path, i.name): i for i in (*self.made.spec.interface, *interface.items)}
        for item in items.values():
            if not _told(item, self.made.instruction):
                yield f"hidden tests use {item}, which the instruction does not name"
        for fault in interface.unnamed:
            if fault.partition(":")[0] in self.made.selection.authored:
                yield f"an extra test uses what no instruction can name: {fault}"

    def _extra(self) -> Iterator[str]:
        upstream = (self.after.tree(path) for path in (*self.made.selection.files, *self.made.selection.guards))
        allowed = extra_tests.allowed_imports(upstream)
        for test in self.design.tests:
            for fault in extra_tests.faults(test.content, allowed):
                yield f"{test_path(self.made, test.name)} {fault}"


def _told(item: InterfaceItem, instruction: str) -> bool:
    """Whether an instruction names an item as freezing does: by its name, its signature and what of it is missing."""
    if item.kind == "module":
        return item.module in instruction or item.path in instruction
    if item.signature and item.kind in ("class", "function") and squeezed(item.signature) not in squeezed(instruction):
        return False
    name = item.name if item.kind == "value" else item.name.rpartition(".")[2]
    return name in instruction and all(missing in instruction for missing in item.missing)
