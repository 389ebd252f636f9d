"""Card files: YAML front matter and a short text, ``knowledge/cards/<operator>/<slug>.md``."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from smith.errors import RecordError, UnknownTask
from smith.mine.signals import operator_classes
from smith.paths import Layout, write_atomically
from smith.records.base import read, to_json
from smith.records.card import Card

SECTIONS = ("When", "How", "Verify", "Pitfalls")
OTHER = "other"
"""The operator class of what no word tells."""
LARGEST = 8192
"""Bytes of a card: it is read by agents whose attention is short."""

_HEADING = re.compile(r"^## (.*?) *$", re.MULTILINE)
_FENCE = "---\n"
_TAG = "tag:yaml.org,2002:"
_SCALARS: dict[str, Callable[[str], Any]] = {
    f"{_TAG}str": str,
    f"{_TAG}int": int,
    f"{_TAG}float": float,
    f"{_TAG}null": lambda text: None,
    f"{_TAG}bool": lambda text: text.lower() in ("true", "yes", "on"),
}
_REFERENCES = (yaml.AnchorToken, yaml.AliasToken)
_SLUG = re.compile(r"[a-z0-9]+(?:[-_+][a-z0-9]+)*\Z")


@dataclass(frozen=True)
class CardFile:
    """A card with its text. ``where`` is its path below the data repository."""

    where: str
    card: Card
    body: str
    digest: str = ""
    """SHA-256 of the file that it was read from."""

    def section(self, name: str) -> str:
        """The text below one heading, without it; empty where there is none."""
        parts = _HEADING.split(self.body)
        return next((text.strip() for title, text in zip(parts[1::2], parts[2::2], strict=True) if title == name), "")


def identifier(card: Card) -> str:
    """The identifier that belongs to what ``card`` states: aim, lever, and where it applies but for the toolchain.

    Prose, status and figures may change under it.
    """
    where = card.applies_to.model_dump(mode="json", exclude={"toolchain"})
    stated = {"aim": card.aim.value, "lever": card.lever, "applies_to": dict(sorted(where.items()))}
    return hashlib.sha256(to_json(stated)).hexdigest()[:12]


def with_identifier(card: Card) -> Card:
    """The same card under its own identifier."""
    return card.model_copy(update={"id": identifier(card)})


@cache
def known_operators() -> frozenset[str]:
    """Every class of operators that a card may be about."""
    return operator_classes() | {OTHER}


_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _plain(node: Any) -> Any:
    """What a node of YAML stands for: plain values alone, each key once. Raises :class:`yaml.YAMLError`."""
    if isinstance(node, yaml.ScalarNode):
        if (made := _SCALARS.get(node.tag)) is not None:
            return made(node.value)
        raise yaml.YAMLError(f"{node.value[:40]!r} is no plain value: put it in quotes")
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return [_plain(one) for one in node.value]
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        found = {_plain(key): _plain(value) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        if len(found) < len(node.value):
            names = [str(key.value) for key, _ in node.value]
            raise yaml.YAMLError(f"{max(names, key=names.count)} is given twice, or is no name")
        return found
    raise yaml.YAMLError(f"{node.tag} is not allowed")


def _parse(head: str) -> Any:
    """The front matter as plain values. Python's own constructor takes twice as long for more than is wanted here."""
    if ("&" in head or "*" in head) and any(isinstance(token, _REFERENCES) for token in yaml.scan(head, _SAFE)):
        raise yaml.YAMLError("anchors and aliases are not allowed: with them a small file grows without end")
    loader = _SAFE(head)
    try:
        node = loader.get_single_node()
    finally:
        loader.dispose()
    return None if node is None else _plain(node)


def loads(data: bytes, where: str) -> CardFile:
    """Parse the bytes of a card. Raises :class:`RecordError` naming ``where`` and what is wrong."""
    digest = hashlib.sha256(data).hexdigest()
    if len(data) > 8 * LARGEST:
        raise RecordError(f"{where}: {len(data)} bytes are no card")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(f"{where}: not UTF-8") from error
    head, fence, body = text[len(_FENCE) :].partition("\n" + _FENCE)
    if not text.startswith(_FENCE) or not fence:
        raise RecordError(f"{where}: no front matter", hint="the first line is ---, and so is the one that ends it")
    try:
        document = _parse(head)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RecordError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    card = Card.parse(document, where)
    found = tuple(_HEADING.findall(body))
    if found != SECTIONS:
        wanted = ", ".join(SECTIONS)
        raise RecordError(f"{where}: the sections are {wanted}, in this order; there are: {', '.join(found) or 'none'}")
    return CardFile(where, card, body.strip("\n"), digest)


def dumps(card: Card, body: str) -> bytes:
    """The bytes of a card: the same card and text are the same bytes."""
    head = yaml.safe_dump(card.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)
    text = body.strip("\n")
    return f"{_FENCE}{head}{_FENCE}\n{text}\n".encode()


def body_of(sections: dict[str, str]) -> str:
    """The text of a card from its sections."""
    return "\n\n".join(f"## {name}\n\n{sections[name].strip()}" for name in SECTIONS)


def slug_of(card: Card) -> str:
    """The file name of a card that smith itself makes: its lever, and languages and devices in short."""
    parts = (card.lever, *card.applies_to.languages, *card.applies_to.devices, *card.applies_to.dtypes)
    words = re.sub(r"[^a-z0-9]+", "-", "-".join(parts)).strip("-")
    return words if len(words) <= 80 and not card.applies_to.regime else f"{words[:67].strip('-')}-{card.id}"


def path_of(card: Card) -> str:
    """Where such a card lies, below the data repository."""
    return f"knowledge/cards/{card.applies_to.operator}/{slug_of(card)}.md"


def well_placed(where: str, card: Card) -> bool:
    """Whether ``where`` is a place for this card: the folder of its operator, and a plain name."""
    folder, _, name = where.rpartition("/")
    stem = name.removesuffix(".md")
    return folder == f"knowledge/cards/{card.applies_to.operator}" and bool(_SLUG.match(stem)) and name.endswith(".md")


def card_paths(layout: Layout) -> list[Path]:
    """Every file that should be a card, sorted."""
    return sorted(layout.cards.glob("*/*.md"), key=os.fspath) if layout.cards.is_dir() else []


def load(layout: Layout, path: Path) -> CardFile:
    """Read one card. Raises :class:`RecordError`."""
    where = path.relative_to(layout.root).as_posix()
    if path.is_symlink():
        raise RecordError(f"{where}: a link is no card")
    return loads(read(path), where)


def save(layout: Layout, file: CardFile) -> None:
    """Write a card to its place, whole or not at all."""
    write_atomically(layout.root / file.where, dumps(file.card, file.body))


def find(files: list[CardFile], wanted: str) -> CardFile:
    """The card whose identifier begins with ``wanted``. Raises :class:`UnknownTask` unless that is one."""
    found = [file for file in files if wanted and file.card.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownTask(f"{wanted} is the beginning of {len(found)} cards", hint="give more of the identifier")
    raise UnknownTask(f"no card {wanted[:80]!r}", hint="see: smith knowledge search WORDS")
