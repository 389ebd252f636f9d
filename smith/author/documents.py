"""What a model is given to read: the parts of a bundle as named documents, whole, and how much of each is shown.

Everything in them comes from upstream or from a model, so it is data: fenced in the prompts with a mark that no
document can contain, since it is made from all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from smith.freeze.bundle import EXTRA_TESTS, INSTRUCTION, REFERENCE, Bundle, Store
from smith.freeze.interface import with_support
from smith.freeze.modules import LARGEST, World
from smith.freeze.overlap import added_lines
from smith.freeze.study import files_of
from smith.git.trees import read_file
from smith.mine.blobs import Blobs
from smith.records.authoring import Quote
from smith.records.receipt import Receipt

MOST_CHARS = 24_000
"""Of one document that are shown."""
MOST_CHARS_IN_ALL = 160_000


@dataclass(frozen=True)
class Text:
    """One document. Evidence is held against ``text``, ``shown`` is what fits into a prompt."""

    name: str
    text: str

    @property
    def shown(self) -> str:
        """The text, with a marked gap in the middle where it is long."""
        if len(self.text) <= MOST_CHARS:
            return self.text
        head, tail = self.text[: MOST_CHARS * 2 // 3], self.text[-MOST_CHARS // 3 :]
        return f"{head}\n[... {len(self.text) - len(head) - len(tail)} characters left out ...]\n{tail}"


@dataclass(frozen=True)
class Documents:
    """Documents by name, in the order in which they are shown."""

    texts: tuple[Text, ...]

    @property
    def named(self) -> Mapping[str, str]:
        """Name to whole text."""
        return {text.name: text.text for text in self.texts}

    @property
    def fence(self) -> str:
        """A mark that stands in none of them."""
        digest = hashlib.sha256()
        for text in self.texts:
            digest.update(f"{text.name}\0{text.text}\0".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:20]

    @property
    def shown(self) -> tuple[Text, ...]:
        """Those that fit into a prompt together, the first ones first."""
        kept: list[Text] = []
        size = 0
        for text in self.texts:
            size += len(text.shown)
            if kept and size > MOST_CHARS_IN_ALL:
                break
            kept.append(text)
        return tuple(kept)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Names of those that do not."""
        return tuple(text.name for text in self.texts[len(self.shown) :])

    def plus(self, more: Iterable[Text]) -> Documents:
        """Further documents before these: what is new is read first."""
        return Documents((*more, *self.texts))

    def lacking(self, quotes: Iterable[Quote]) -> list[str]:
        """One line for each quotation that does not stand where it says."""
        faults = []
        for quote in quotes:
            text = self.named.get(quote.document)
            if text is None:
                faults.append(f"there is no document {quote.document!r}")
            elif quote.quote not in text:
                faults.append(f"{quote.document} does not contain {quote.quote[:120]!r}")
        return faults


def gather(store: Store, bundle: Bundle, receipt: Receipt) -> Documents:
    """The documents of a bundle: instruction, reference, hidden tests, changed files as they start, receipt."""
    texts = [Text(INSTRUCTION, bundle.instruction), Text(str(REFERENCE), _decoded(bundle.reference))]
    selection = bundle.selection
    hidden = files_of(store.scratch, selection.tree)
    with Blobs(store.scratch, largest=LARGEST) as blobs:
        world = World(blobs, hidden)
        supported = with_support(world, selection.files, frozenset(hidden))
        for path in dict.fromkeys([*selection.files, *supported, *selection.guards]):
            if path in hidden:
                texts.append(Text(f"hidden/{path}", world.text(path)))
    for path in selection.authored:
        texts.append(Text(f"hidden/{path}", _decoded((bundle.path / EXTRA_TESTS / path).read_bytes())))
    for path in sorted({*added_lines(bundle.reference), *(kernel.path for kernel in bundle.spec.kernels)}):
        data = read_file(store.scratch, bundle.spec.source.tree, path)
        if data is not None:
            texts.append(Text(f"start/{path}", _decoded(data)))
    texts += [Text(f"probes/{p.name}.patch", _decoded(bundle.probe_patch(p.name))) for p in bundle.probes]
    return Documents((*texts, Text("receipt", _told(receipt))))


def _told(receipt: Receipt) -> str:
    """A receipt in lines, without what changes from run to run: the same findings are the same prompt."""
    return "\n".join(
        [
            f"device: {receipt.device}",
            *(f"fail-to-pass: {i} (on the base: {receipt.base_failures[i].value})" for i in receipt.fail_to_pass),
            *(f"pass-to-pass: {i}" for i in receipt.pass_to_pass),
            *(f"unstable: {i}" for i in receipt.flaky),
            *(f"launched: {kernel}" for kernel in receipt.launches),
        ]
    )


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
