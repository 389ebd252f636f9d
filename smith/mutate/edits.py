"""Places where a file can be made wrong, and how: replacements of spans of its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """The span from ``begin`` to ``end`` (offsets in characters) gives way to ``text``."""

    begin: int
    end: int
    text: str


@dataclass(frozen=True)
class Site:
    """One way to make a file wrong. ``edits`` belong to one expression or statement and never overlap."""

    operator: str
    edits: tuple[Edit, ...]
    kernel: str = ""
    """Qualified name of the kernel that it lies in; empty for other code."""

    @property
    def begin(self) -> int:
        return min(edit.begin for edit in self.edits)


def edited(text: str, edits: Sequence[Edit]) -> str:
    """``text`` with all ``edits`` done."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.begin] + edit.text + text[edit.end :]
    return text


def line_of(text: str, offset: int) -> int:
    """The line, from 1, of an offset."""
    return text.count("\n", 0, offset) + 1


def decoded(data: bytes) -> tuple[str, bool] | None:
    """The text with ``\\n`` as line end, and whether its line ends are ``\\r\\n``; None where it is not UTF-8 or mixes
    line ends, so that it could not be written back."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    crlf = "\r\n" in text
    if crlf and text.count("\r\n") != text.count("\n"):
        return None
    text = text.replace("\r\n", "\n")
    return None if "\r" in text else (text, crlf)


def encoded(text: str, crlf: bool) -> bytes:
    """The inverse of :func:`decoded`."""
    return (text.replace("\n", "\r\n") if crlf else text).encode("utf-8")
