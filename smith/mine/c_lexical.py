"""C-like text below its grammar: comments, strings, directives, and code without layout.

Everything here is one pass of a regular expression: a grammar costs ten times as much a byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from smith.mine.lines import common_start
from smith.mine.remembered import Remembered

_BLOCK = r"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)"
_LINE = r"//[^\n\\]*(?:\\.[^\n\\]*)*"
_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
# Every alternative begins with a letter of its own: only then does `re` skip what lies between at full speed. A digit
# in front of an apostrophe is a number with separators. No raw string holds another: what is not closed costs little.
_NOISE = re.compile(
    rf"{_LINE}|{_BLOCK}"
    r'|"(?<=R")(?P<mark>[^()\\\s]{0,16})\((?:[^R]|R(?!"))*?\)(?P=mark)"'
    rf"|{_STRING}"
    r"|'(?<!\d')(?:[^'\\\n]|\\.[^'\n]{0,8})'"
    rf"|\#(?:[^\n\\/\"]+|\\[ \t]*\n|\\.|{_LINE}|{_BLOCK}|{_STRING}|/)*",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"#[ \t]*(\w+)(?:[ \t]+(0)\b)?")
# Directives that a reader asks for; most others are pragmas.
_TELLING = ("if", "el", "endif", "define")
_WORD = re.compile(r"\w")
_SPACE = re.compile(r"\s+")
# Blanks that part no two words, and no two operators that would be another one together.
_LAYOUT = re.compile(r" (?=\W)(?!(?<=\+ )\+|(?<=- )-|(?<=& )&)|(?<=\W) (?=\w)")
_ASSEMBLY_COMMENT = re.compile(r"(?://|;|#)[^\n]*|/\*.*?\*/", re.DOTALL)
# What follows a conditional whose branches are only parts of a declaration.
_CONTINUES = (b"{", b"(", b")", b",", b";", b":", b"=", b">")


class Directive(NamedTuple):
    """A preprocessor line, with its continuations, between two offsets."""

    begin: int
    end: int
    word: str
    never: bool
    """Whether it is ``#if 0``."""


@dataclass(frozen=True)
class LeftOut:
    """A branch of a conditional that a reading does without, and the branch that it takes instead."""

    begin: int
    end: int
    instead: tuple[int, int]


@dataclass(frozen=True)
class Text:
    """One version of a file in three forms."""

    raw: str
    words: str
    """Without comments."""
    plain: str
    """Without comments, directives and the content of strings; every other character at its offset in ``raw``."""
    directives: tuple[Directive, ...]
    """Conditionals and definitions of macros."""


class Piece(NamedTuple):
    """Lines up to a blank one, read by themselves."""

    words: str
    plain: str
    directives: tuple[Directive, ...]
    """With offsets in the piece."""
    open: bool
    """Whether a comment goes on behind it."""


Pieces = Remembered[str, Piece]

_BLANK = "\n\n"


def lex(raw: str, pieces: Pieces | None = None) -> Text:
    """Tell comments, strings and directives from the rest.

    With ``pieces``, what stands between blank lines is read once for all texts, wherever it stands: versions of a file
    share most of theirs, and so do copies. The result is the same.
    """
    # Only a comment or a raw string goes on behind a blank line; all else ends with a line, or with the next one where
    # a backslash continues it.
    if pieces is None or 'R"' in raw:
        whole = _piece(raw)
        return Text(raw, whole.words, whole.plain, whole.directives)
    words: list[str] = []
    plain: list[str] = []
    directives: list[Directive] = []
    at = 0
    while at < len(raw):
        end = raw.find(_BLANK, at) + len(_BLANK)
        text = raw[at:end] if end >= len(_BLANK) else raw[at:]
        piece = pieces.get(text) or _keep(text, pieces)
        if piece.open:
            text, piece = _with_comment(raw, at, len(text), pieces)
        words.append(piece.words)
        plain.append(piece.plain)
        if piece.directives:
            directives += [Directive(at + begin, at + end, word, no) for begin, end, word, no in piece.directives]
        at += len(text)
    return Text(raw, "".join(words), "".join(plain), tuple(directives))


def _with_comment(raw: str, at: int, length: int, pieces: Pieces) -> tuple[str, Piece]:
    """The piece from ``at`` on, whose first ``length`` characters end in a comment, up to a blank line behind that."""
    close = raw.find("*/", at + length)
    end = raw.find(_BLANK, close) + len(_BLANK)
    if close >= 0 and end >= len(_BLANK):
        text = raw[at:end]
        piece = pieces.get(text) or _keep(text, pieces)
        if not piece.open:
            return text, piece
    # One comment after another, each with a blank line in it: this must not cost the square of their number.
    return raw[at:], _piece(raw[at:])


def _keep(text: str, pieces: Pieces) -> Piece:
    piece = _piece(text)
    pieces.keep(text, piece, len(text))
    return piece


def _piece(raw: str) -> Piece:
    words: list[str] = []
    plain: list[str] = []
    directives: list[Directive] = []
    done = 0
    for match in _NOISE.finditer(raw):
        begin, end = match.span()
        between, found = raw[done:begin], match[0]
        done = end
        words.append(between)
        plain.append(between)
        if found[0] == "/":
            words.append(" ")
            plain.append(" " * (end - begin))
        elif found[0] == "#":
            words.append(_NOISE.sub(_no_comment, found[1:]).join(("#", "")))
            plain.append(" " * (end - begin))
            if (word := _DIRECTIVE.match(found)) and word[1].startswith(_TELLING):
                directives.append(Directive(begin, end, word[1], word[2] is not None))
        else:
            words.append(found)
            plain.append(found[0] + " " * (end - begin - 2) + found[-1] if end - begin > 1 else " ")
    if not done:
        return Piece(raw, raw, (), False)
    words.append(raw[done:])
    plain.append(raw[done:])
    return Piece("".join(words), "".join(plain), tuple(directives), done == len(raw))


def one_reading(text: Text, *, last: bool = False) -> tuple[bytearray, list[LeftOut]]:
    """``text.plain`` as one byte a character without branches that cannot be read one after another; and these.

    The branches of a conditional stay where each is complete. Where they are parts of a declaration, or open other
    blocks than they close, only the first stays, or the ``last``.
    """
    code = bytearray(text.plain.encode("ascii", "replace"))
    left_out: list[LeftOut] = []
    open_: list[list[Directive]] = []
    for directive in text.directives:
        if directive.word.startswith("if"):
            open_.append([directive])
        elif open_ and directive.word.startswith("el"):
            open_[-1].append(directive)
        elif open_ and directive.word == "endif":
            group = [*open_.pop(), directive]
            branches = [(one.end, two.begin) for one, two in pairwise(group)]
            without: list[LeftOut] = []
            if group[0].never and not _balanced(code, *branches[0]):
                begin, end = branches.pop(0)
                without.append(LeftOut(begin, end, (end, end)))
            filled = [(begin, end) for begin, end in branches if begin < end and not code[begin:end].isspace()]
            if len(filled) > 1 and not all(_complete(code, begin, end, directive.end) for begin, end in filled):
                instead = filled.pop(-1 if last else 0)
                without += [LeftOut(begin, end, instead) for begin, end in filled]
            for one in without:
                code[one.begin : one.end] = b" " * (one.end - one.begin)
            left_out += without
    return code, left_out


def _balanced(code: bytearray, begin: int, end: int) -> bool:
    return all(code.count(a, begin, end) == code.count(b, begin, end) for a, b in ((b"{", b"}"), (b"(", b")")))


def _complete(code: bytearray, begin: int, end: int, after: int) -> bool:
    if not _balanced(code, begin, end):
        return False
    return code[begin:end].rstrip().endswith((b";", b"}")) or not code[after : after + 2000].lstrip().startswith(
        _CONTINUES
    )


def code(definition: str) -> str:
    """``definition`` without comments and layout. Directives stay, each between two control characters."""
    one_line = " ".join(_NOISE.sub(_kept, definition).split())
    return _LAYOUT.sub("", one_line).strip()


def surely_other_code(one: str, other: str) -> bool:
    """Whether two definitions plainly differ in code: in a word that is in no comment, where they first differ.

    True for most changes, and found much faster than by comparing what :func:`code` makes of both.
    """
    at = common_start(one, other)
    if at == len(one) or at == len(other) or not (_WORD.match(one, at) and _WORD.match(other, at)):
        return False
    line = one.rfind("\n", 0, at) + 1
    if one.find("//", line, at) >= 0 or one.endswith("\\\n", 0, line):
        return False
    opened = one.rfind("/*", 0, at)
    return opened < 0 or one.find("*/", opened + len("/*"), at) >= 0


def assembly(text: str) -> str:
    """An assembly file without comments and layout."""
    return " ".join(_ASSEMBLY_COMMENT.sub("", text).split())


def _kept(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] == "/":
        return " "
    if found[0] == "#":
        return "\x01#" + _NOISE.sub(_no_comment, found[1:]).replace("\\\n", " ").strip() + "\x02"
    # Blanks in a string are code.
    return _SPACE.sub(lambda blanks: "\x03" * len(blanks[0]), found)


def _no_comment(match: re.Match[str]) -> str:
    return " " if match[0][0] == "/" else match[0]
