"""Apply git patches to trees held in memory.

A tree is a mapping from path to :class:`Entry`. Only what the sample's patches use is understood: text hunks,
new and deleted files, renames, mode changes, symbolic links and binary literals. Everything else is an error,
so that a patch is never half applied.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["Entry", "PatchError", "Tree", "apply_patch"]

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_NO_NEWLINE = b"\\ No newline at end of file\n"


class PatchError(ValueError):
    """A patch is malformed or does not fit the tree."""


@dataclass(frozen=True)
class Entry:
    """One file of a tree: its git mode (``100644``, ``100755`` or ``120000``) and its bytes."""

    mode: str
    data: bytes


Tree = Mapping[str, Entry]


@dataclass
class _FilePatch:
    """What one ``diff --git`` section says."""

    old: str
    new: str
    old_mode: str | None = None
    new_mode: str | None = None
    created: bool = False
    deleted: bool = False
    literal: bytes | None = None
    hunks: list[tuple[int, list[bytes], list[bytes]]] = field(default_factory=list)
    """Each hunk: its first old line (from 0), the old lines, the new lines."""


def apply_patch(tree: Tree, patch: bytes) -> dict[str, Entry]:
    """Return a copy of ``tree`` with ``patch`` applied; hunks may have moved, but must match exactly."""
    result = dict(tree)
    for change in _parse(patch):
        before = Entry("100644", b"") if change.created else result.pop(change.old, None)
        if before is None or (change.created and change.new in result):
            raise PatchError(f"{change.new}: the patch and the tree disagree on whether the file exists")
        if change.deleted:
            continue
        data = _patched(change, before.data) if change.literal is None else change.literal
        result[change.new] = Entry(change.new_mode or before.mode, data)
    return result


def _patched(change: _FilePatch, data: bytes) -> bytes:
    """Apply the hunks of ``change`` to ``data``."""
    lines = _split(data)
    shift = 0
    for start, old, new in change.hunks:
        place = _find(lines, old, start + shift)
        if place is None:
            raise PatchError(f"{change.old}: hunk at line {start + 1} does not fit")
        lines[place : place + len(old)] = new
        shift = place - start + len(new) - len(old)
    return b"".join(lines)


def _split(data: bytes) -> list[bytes]:
    """Split after line feeds only: a carriage return is content."""
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", data)


def _find(lines: list[bytes], wanted: list[bytes], near: int) -> int | None:
    """Find ``wanted`` in ``lines``, as close to index ``near`` as possible."""
    places = [at for at in range(len(lines) - len(wanted) + 1) if lines[at : at + len(wanted)] == wanted]
    return min(places, key=lambda at: abs(at - near), default=None)


def _parse(patch: bytes) -> Iterator[_FilePatch]:
    """Read the ``diff --git`` sections of a patch."""
    sections = re.split(rb"^(?=diff --git )", patch, flags=re.MULTILINE)
    for section in sections[1:]:
        yield _parse_section(_split(section))


def _parse_section(lines: list[bytes]) -> _FilePatch:
    header = lines[0].decode().rstrip("\n")
    match = re.fullmatch(r"diff --git a/(.+) b/(.+)", header)
    if match is None:
        raise PatchError(f"cannot read the paths of {header!r}")
    change = _FilePatch(match[1], match[2])
    at = 1
    while at < len(lines):
        line = lines[at]
        if line.startswith(b"@@ "):
            at = _parse_hunk(lines, at, change)
            continue
        if line == b"GIT binary patch\n":
            change.literal = _parse_literal(lines, at + 1)
            break
        _parse_header(line.decode().rstrip("\n"), change)
        at += 1
    return change


def _parse_header(line: str, change: _FilePatch) -> None:
    """Read one extended header line."""
    word, _, value = line.rpartition(" ")
    if word == "new file mode":
        change.created, change.new_mode = True, value
    elif word == "deleted file mode":
        change.deleted = True
    elif word == "new mode":
        change.new_mode = value
    elif not line.startswith(("old mode ", "index ", "--- ", "+++ ", "similarity index ", "rename ")):
        raise PatchError(f"unknown patch line {line!r}")


def _parse_hunk(lines: list[bytes], at: int, change: _FilePatch) -> int:
    """Read the hunk that starts at line ``at``; return the line after it."""
    match = _HUNK.match(lines[at])
    if match is None:
        raise PatchError(f"cannot read the hunk {lines[at]!r}")
    start, count = int(match[1]), int(match[2] or 1)
    sides: dict[bytes, tuple[list[bytes], ...]]
    old: list[bytes] = []
    new: list[bytes] = []
    sides = {b" ": (old, new), b"-": (old,), b"+": (new,)}
    touched: tuple[list[bytes], ...] = ()
    at += 1
    while at < len(lines) and not lines[at].startswith(b"@@ "):
        line = lines[at]
        if line == _NO_NEWLINE:
            for side in touched:
                side[-1] = side[-1].removesuffix(b"\n")
        elif line[:1] in sides:
            touched = sides[line[:1]]
            for side in touched:
                side.append(line[1:])
        else:
            raise PatchError(f"unknown hunk line {line!r}")
        at += 1
    change.hunks.append((start - 1 if count else start, old, new))
    return at


def _parse_literal(lines: list[bytes], at: int) -> bytes:
    """Decode the first literal of a binary patch (git's base 85, one length letter before each line)."""
    match = re.fullmatch(rb"literal (\d+)\n", lines[at])
    if match is None:
        raise PatchError("only literal binary patches are understood")
    packed = b""
    for line in lines[at + 1 :]:
        letter, text = line[:1], line[1:].rstrip(b"\n")
        if not text:
            break
        size = letter[0] - (ord("A") - 1 if letter.isupper() else ord("a") - 27)
        packed += base64.b85decode(text)[:size]
    data = zlib.decompress(packed)
    if len(data) != int(match[1]):
        raise PatchError("binary patch has the wrong length")
    return data
