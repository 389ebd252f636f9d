"""The outline of a piece of Python: what is decorated and what stands around it, and hardly anything else.

Only where such functions begin and end is of interest, and the parser of Python takes many times as long over all the
statements in them. So each run of simple statements, and each block without a decorator, becomes one ``pass`` on its
last line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_STRING = (
    r'"{3}(?:[^"\\]|\\.|"(?!""))*+"{3}|\'{3}(?:[^\'\\]|\\.|\'(?!\'\'))*+\'{3}'
    r'|"(?!"")(?:[^"\\\n]|\\.)*+"|\'(?!\'\')(?:[^\'\\\n]|\\.)*+\''
)
_COMMENT = r"\#[^\n]*+"
# Brackets in brackets. What is deeper is left to the parser.
_BRACKETS = r"(?!)"
for _ in range(6):
    _BRACKETS = rf"[(\[{{](?:[^\"'\#()\[\]{{}}\\]++|{_STRING}|{_COMMENT}|\\.|{_BRACKETS})*+[)\]}}]"
# One logical line from anywhere in it.
_REST = rf"(?:[^\"'\#()\[\]{{}}\\\n]++|{_STRING}|{_COMMENT}|\\\n|{_BRACKETS})*+\n"
_BLANK = rf"[ \t]*+(?:{_COMMENT})?\n"
# `match` and `case` may be names as well, and then their lines are kept for nothing.
_WORD = r"(?:@|(?:def|class|async|if|elif|else|try|except|finally|with|for|while|match|case)\b)"
_SIMPLE = rf"(?![ \t\n\#]|{_WORD}){_REST}"
_LINES = re.compile(
    rf"(?P<blank>(?:{_BLANK})++)"
    rf"|(?P<compound>(?P<margin>[ \t]*+){_WORD}{_REST})"
    rf"|(?P<indent>[ \t]*+){_SIMPLE}(?:(?:{_BLANK})*+(?P=indent){_SIMPLE})*+",
    re.DOTALL,
)


class _Piece(NamedTuple):
    """Blank lines, the head of a compound statement or a decorator, or a run of simple statements, by offsets."""

    begin: int
    end: int
    indent: int
    """Characters in front of its first line; -1 for blank lines, which belong to no block."""
    compound: bool


def skeleton(text: str) -> str | None:
    """``text`` with its lines where they are, without simple statements and without blocks that hold no decorator.

    Decorated functions and classes, and those around them, begin and end where they did. None where the lines cannot
    be told apart.
    """
    if "\f" in text or "\r" in text:
        return None
    if not text.endswith("\n"):
        text += "\n"
    pieces: list[_Piece] = []
    ends: dict[int, int] = {}
    """What needs no reading: the piece behind the block of each such head."""
    open_: list[int] = []
    at = 0
    while at < len(text):
        match = _LINES.match(text, at)
        if match is None:
            return None
        begin, at = match.span()
        if match["blank"] is not None:
            pieces.append(_Piece(begin, at, -1, False))
            continue
        compound = match["compound"] is not None
        indent = match.end("margin" if compound else "indent") - begin
        while open_ and pieces[open_[-1]].indent >= indent:
            ends[open_.pop()] = len(pieces)
        if compound and text[begin + indent] == "@":
            open_.clear()  # these hold it
        elif compound:
            open_.append(len(pieces))
        pieces.append(_Piece(begin, at, indent, compound))
    ends.update((head, len(pieces)) for head in open_)
    return "".join(_outlined(text, pieces, ends))


def _outlined(text: str, pieces: Sequence[_Piece], ends: Mapping[int, int]) -> Iterator[str]:
    at = 0
    while at < len(pieces):
        first = last = pieces[at]
        end = at + 1
        if first.compound:
            yield text[first.begin : first.end]
            block = [one for one in range(at + 1, ends.get(at, at + 1)) if pieces[one].indent >= 0]
            at += 1
            if not block:
                continue
            first, last, end = pieces[block[0]], pieces[block[-1]], block[-1] + 1
        lines = text.count("\n", pieces[at].begin, last.end)
        if first.indent < 0:
            yield "\n" * lines
        else:
            yield "\n" * (lines - 1) + text[first.begin : first.begin + first.indent] + "pass\n"
        at = end
