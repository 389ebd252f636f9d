"""Function definitions in C-like text, by tree-sitter's C++ grammar.

What the grammar cannot read in such files are macros and extensions, and nearly all of those stand in function bodies
(launches, dispatch macros, inline assembly), in front of declarations (``CK_TILE_DEVICE``) or across conditionals. So
bodies and specifiers are blanked first, at equal offsets, and only declarations are parsed, which also takes a fraction
of the time. They are parsed one by one, which is as quick as all at once, needs no second parse where a version of a
file repeats a declaration of another, and keeps what the grammar cannot read from hiding what stands around it. A body
that no function of the resulting tree owns has its head parsed alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Range, Tree

from smith.mine.c_lexical import LeftOut, Text, one_reading
from smith.mine.remembered import Remembered

# Parentheses in parentheses, as deep as `__attribute__((vector_size(4 * sizeof(int))))` and one more.
_INNER = rb"[^()]*+"
for _ in range(5):
    _INNER = rb"[^()]*+(?:\(" + _INNER + rb"\)[^()]*+)*+"
_ARGUMENTS = rb"\(" + _INNER + rb"\)"
# Specifiers that mean nothing to the grammar: keywords with underscores, and macros in capitals in front of a word. A
# type in capitals goes as well, which does no harm in front of a name. Only a pattern whose first character is one of a
# set is searched for at full speed; what stands before it is looked back at.
_SPECIFIER = re.compile(
    rb"[A-Z_](?<!\w.)(?:"
    rb"(?<=_)(?:_\w+__(?!\w)(?:\s*%(args)s)?|_(?:kernel|forceinline|inline|global|local|constant|private)\b"
    rb"|(?:Pragma|_attribute|_declspec)\s*%(args)s)"
    rb"|(?<=[A-Z])(?<!:.)[A-Z0-9_]{2,}(?:[ \t]*%(args)s)?(?=\s+(?!const\s*[*&,)>])(?:[A-Za-z_~]|\[\[))"
    rb")" % {b"args": _ARGUMENTS}
)
# What else the grammar has not: arguments behind an operator's name, the default of a parameter without name, expanded
# initializers; and it takes the first character of `>=` for the end of a template's arguments.
_UNREAD = re.compile(
    rb"operator\(\)\s*<[^;{}()]*>(?=\s*\()|=\s*\{\s*\}(?=\s*[,)])|\.\.\.(?<=\)\.\.\.)(?=\s*[,{])"
    rb"|>=(?<!\boperator>=)(?<!\boperator >=)"
)
# OpenCL and Metal have specifiers that are plain words.
_WORDS = re.compile(rb"\b(?:kernel|global|local|constant|device|threadgroup|thread)\b(?=\s+[A-Za-z_])")
_BRACE = re.compile(rb"[{}]")
# The head of a block that may hold definitions, and its name. It is left open to the parser; too many only cost time.
_SCOPE = re.compile(
    rb"\b(?:namespace|struct|union|extern|class(?!\s*[\w.]*\s*[,>=]))\b"
    rb"(?:\s*(?:\[\[[^\]]*\]\]|alignas\s*%(args)s))*\s*([A-Za-z_][\w:]*)?" % {b"args": _ARGUMENTS}
)
# A block whose definitions are read as if they stood outside of it.
_NAMESPACE = re.compile(rb"\s*(?:(?:inline\s+)?namespace(?:\s+[A-Za-z_][\w:]*)?|extern\s*\"[^\"]*\")\s*")
# What follows on a block that ends no definition.
_GOES_ON = re.compile(rb"\s*[;,)(=.]")
_BODY_FOLLOWS = re.compile(rb"(?:\)(?:\s*\.\.\.)?|\b(?:const|noexcept|override|final|mutable)|->[^={}]*)\Z")
_MACRO_NAME = re.compile(r"[A-Z][A-Z0-9_]+")
_ACCESS = re.compile(rb"^\s*(?:public|private|protected)\s*:(?!:)")
_DECLARATION = re.compile(rb"\s*((?:::|\[\[|[A-Za-z_~]))")
_GAP = re.compile(rb"\s{16,}")
_INK = re.compile(rb"\S")

_CONTAINERS = frozenset(
    {
        "translation_unit",
        "namespace_definition",
        "linkage_specification",
        "declaration_list",
        "class_specifier",
        "struct_specifier",
        "union_specifier",
        "field_declaration_list",
        "template_declaration",
        "declaration",
        "field_declaration",
        "type_definition",
        "friend_declaration",
        "expression_statement",
        "ERROR",
    }
)
_WRAPPERS = frozenset({"template_declaration", "linkage_specification", "friend_declaration"})
_TEMPLATES = frozenset({"template_function", "template_method", "template_type"})
_UNNAMED_FIELDS = frozenset({"reference_declarator", "parenthesized_declarator", "attributed_declarator"})
_CLASSES = frozenset({"class_specifier", "struct_specifier", "union_specifier"})


class Function(NamedTuple):
    """One definition: offsets of its first specifier, of its body's opening brace, and behind the closing one."""

    name: str
    """Qualified, without template arguments."""
    begin: int
    body: int
    end: int


class _Body(NamedTuple):
    """A block without definitions. ``head`` and ``brace`` are offsets in the outline: where its head begins, and its
    opening brace."""

    head: int
    brace: int
    begin: int
    """Its opening brace in the code."""
    end: int
    """Behind its closing one."""
    callable: bool
    """Whether a function's head could stand before it."""


class _Scope(NamedTuple):
    """A block that was left open. ``head`` and ``brace`` as above; its braces in the code."""

    head: int
    brace: int
    begin: int
    end: int


@dataclass(frozen=True)
class _Outline:
    """Code without what stands in its bodies."""

    code: bytes
    cuts: list[int]
    """Offsets in it from which on another distance to the whole code holds, beginning with 0."""
    distances: list[int]
    bodies: dict[int, _Body]
    """By their opening brace in the outline."""
    open: list[_Scope]
    pieces: list[tuple[int, int]]
    """Declarations with a block in them, outside of all scopes but namespaces, or several where that is not clear."""

    def whole(self, at: int) -> int:
        """The offset in the whole code of one in the outline."""
        return at + self.distances[bisect_right(self.cuts, at) - 1]


class Definition(NamedTuple):
    """A function definition in a piece of declarations, by offsets in the piece."""

    name: str
    before: int
    """Behind what stands before it."""
    begin: int
    brace: int
    end: int


class Definitions(NamedTuple):
    """What the grammar finds in a piece of declarations, and whether it could not read all of it."""

    found: tuple[Definition, ...]
    unread: bool


Pieces = Remembered[tuple[bytes, bool], Definitions]
"""Definitions by the piece of declarations, and whether OpenCL's or Metal's specifiers are known in it."""


def functions(text: Text, *, words: bool = False, pieces: Pieces | None = None) -> list[Function]:
    """Every function definition outside of other functions, in order. ``words``: OpenCL's or Metal's specifiers too.

    With ``pieces``, declarations are parsed once for all texts: versions of a file share most of theirs.
    """
    code, left_out = one_reading(text)
    found = [_whole(one, text, left_out) for one in _functions(bytes(code), words, pieces)]
    # What the first reading left out lies within functions mostly.
    missing = [one for one in left_out if "{" in text.plain[one.begin : one.end] and not _within(one, found)]
    if missing:
        code, _ = one_reading(text, last=True)
        more = _functions(bytes(code), words, pieces)
        found += [one for one in more if any(a.begin <= one.body and one.end <= a.end for a in missing)]
    return sorted(found, key=lambda one: one.begin)


def _whole(function: Function, text: Text, left_out: list[LeftOut]) -> Function:
    """``function`` with every branch of a conditional that it ends in."""
    end = function.end
    for one in left_out:
        begin, until = one.instead
        if function.begin < begin < function.end <= until:
            end = max(end, one.begin + len(text.plain[one.begin : one.end].rstrip()))
    return function._replace(end=end) if end > function.end else function


def _within(part: LeftOut, found: list[Function]) -> bool:
    return any(one.begin <= part.begin and part.begin + 1 < one.end for one in found)


def _functions(code: bytes, words: bool, pieces: Pieces | None) -> list[Function]:
    outline = _outline(code)
    found: list[Function] = []
    unread: list[tuple[int, int]] = []
    for begin, end in outline.pieces:
        piece = outline.code[begin:end].lstrip()
        known = _definitions(piece, words, pieces)
        found += [_function(one, begin, end - len(piece), code, outline) for one in known.found]
        if known.unread:
            unread.append((begin, end))
    if unread:
        owned = {one.body for one in found}
        braces = list(outline.bodies)
        for begin, end in unread:
            for brace in braces[bisect_left(braces, begin) : bisect_left(braces, end)]:
                body = outline.bodies[brace]
                function = _alone(body, code, outline, words) if body.begin not in owned and body.callable else None
                if function is not None:
                    found.append(function)
    return _qualified(found, outline, words)


def _function(one: Definition, begin: int, start: int, code: bytes, outline: _Outline) -> Function:
    """A definition of the piece that begins at ``begin``, and behind blanks at ``start``."""
    first = outline.whole(start + one.begin)
    ink = _INK.search(code, outline.whole(start + one.before if one.before else begin))
    first = min(ink.start(), first) if ink else first
    body = outline.bodies.get(start + one.brace)
    end = body.end if body else outline.whole(start + one.end)
    return Function(one.name, first, outline.whole(start + one.brace), end)


def _qualified(found: list[Function], outline: _Outline, words: bool) -> list[Function]:
    """``found`` in order and with the names of the scopes around them."""
    scopes = sorted(
        (one.begin, one.end, name)
        for one in outline.open
        if (name := _scope_name(outline.code[one.head : one.brace], words)) is not None
    )
    scopes.reverse()
    around: list[tuple[int, int, str]] = []
    qualified: list[Function] = []
    for function in sorted(found, key=lambda one: one.begin):
        while scopes and scopes[-1][0] < function.begin:
            around.append(scopes.pop())
        around = [one for one in around if function.begin < one[1]]
        name = "::".join([*(name for _, _, name in around), function.name])
        qualified.append(function._replace(name=name))
    return qualified


def _definitions(piece: bytes, words: bool, pieces: Pieces | None) -> Definitions:
    known = pieces.get((piece, words)) if pieces is not None else None
    if known is None:
        tree = _parse(_plain(piece, words))
        known = Definitions(tuple(_walk(tree.root_node)), tree.root_node.has_error)
        if pieces is not None:
            pieces.keep((piece, words), known, len(piece) + 200 * (len(known.found) + 1))
    return known


def _plain(declarations: bytes, words: bool) -> bytes:
    """``declarations`` without what the grammar cannot read, at equal offsets."""
    for pattern in (_SPECIFIER, _UNREAD, _WORDS) if words else (_SPECIFIER, _UNREAD):
        declarations = pattern.sub(_replaced, declarations)
    return declarations


def _replaced(match: re.Match[bytes]) -> bytes:
    found = match[0]
    if found == b">=":
        return b"=="
    return (b"operator()" if found.startswith(b"operator()") else b"").ljust(len(found))


def _parse(declarations: bytes) -> Tree:
    """Parse around long gaps: blanks cost the parser as much as text does."""
    ranges: list[Range] = []
    done = 0
    for gap in _GAP.finditer(declarations):
        # A blank stays on either side.
        ranges.append(Range((0, done), (0, gap.start() + 1), done, gap.start() + 1))
        done = gap.end() - 1
    ranges.append(Range((0, done), (0, len(declarations)), done, len(declarations)))
    return Parser(_language(), included_ranges=ranges).parse(declarations)


@cache
def _language() -> Language:
    return Language(tree_sitter_cpp.language())


def _outline(code: bytes) -> _Outline:
    """``code`` without what stands in blocks that hold no definitions, and cut into pieces."""
    parts: list[bytes] = []
    cuts, distances = [0], [0]
    bodies: dict[int, _Body] = {}
    pieces: list[tuple[int, int]] = []
    closed: list[_Scope] = []
    open_: list[tuple[int, int, int]] = []
    # How many of the open scopes are namespaces, up to the first that is none.
    namespaces = 0
    # How much longer the code is than its outline, up to here; and what of it is in the outline.
    distance = done = 0
    # In the outline: where a head begins, behind the last statement or block, or only behind the last initializer in
    # it; and where a piece does, and whether it holds blocks.
    head = part = begin = 0
    blocks = False

    def cut(end: int, then: int) -> None:
        """End the piece at ``end`` where only namespaces are open, and begin another one at ``then``."""
        nonlocal begin, blocks
        if namespaces == len(open_):
            if blocks:
                pieces.append((begin, end))
            begin, blocks = then, False

    while (brace := _BRACE.search(code, part)) is not None:
        at = brace.start()
        here = at - distance
        if (last := code.rfind(b";", part, at)) >= 0:
            cut(code.find(b";", part, at) + 1 - distance, last + 1 - distance)
            part = last + 1
            head = part - distance
        if brace[0] == b"{" and not _SCOPE.search(code, part, at):
            blocks = True
            close = _closing(code, at)
            if close is None:
                break
            before = code[max(part, at - 200) : at].rstrip()
            callable_ = before.endswith(b")") or _BODY_FOLLOWS.search(before) is not None
            bodies[here] = _Body(head, here, at, close + 1, callable_)
            # An empty block in front of a semicolon would be an initializer.
            filled = callable_ and close > at + 1
            parts.append(code[done : at + 1] + (b";" if filled else b""))
            distance += close - (at + 1) - filled
            done = close
            cuts.append(close - distance)
            distances.append(distance)
            part = close + 1
            if callable_:
                head = part - distance
                if not _GOES_ON.match(code, part):
                    cut(head, head)
            continue
        if brace[0] == b"{":
            if namespaces == len(open_) and _NAMESPACE.fullmatch(code, part, at):
                cut(part - distance, here + 1)
                namespaces += 1
            else:
                blocks = True
            open_.append((part - distance, here, at))
        elif open_:
            cut(here, here + 1)
            namespaces = min(namespaces, len(open_) - 1)
            closed.append(_Scope(*open_.pop(), at))
        part = at + 1
        head = part - distance
    parts.append(code[done:])
    if blocks:
        pieces.append((begin, len(code) - distance))
    closed += [_Scope(*one, len(code)) for one in open_]
    return _Outline(b"".join(parts), cuts, distances, bodies, closed, pieces)


def _closing(code: bytes, at: int) -> int | None:
    """The offset of the brace that closes the one at ``at``."""
    depth = 1
    while depth:
        close = code.find(b"}", at + 1)
        if close < 0:
            return None
        depth += code.count(b"{", at + 1, close) - 1
        at = close
    return at


def _scope_name(head: bytes, words: bool) -> str | None:
    match = _SCOPE.search(_plain(head, words))
    return match[1].decode() if match and match[1] else None


def _alone(body: _Body, code: bytes, outline: _Outline, words: bool) -> Function | None:
    """The function whose body nothing in the tree owns, from its head parsed by itself, as in a class if need be."""
    head = _plain(outline.code[body.head : body.brace], words)
    head = _ACCESS.sub(lambda match: b" " * len(match[0]), head)
    start = _DECLARATION.match(head)
    if start is None:
        return None
    for before, after in ((b"", b"{;}"), (b"struct S {", b"{;}};")):
        tree = _parse(before + head + after)
        pending = [tree.root_node]
        while pending:
            node = pending.pop()
            if node.type == "function_definition" and (name := _declared(node)) is not None:
                begin = outline.whole(body.head + start.start(1))
                ink = _INK.search(code, outline.whole(body.head))
                begin = min(begin, ink.start()) if ink else begin
                return Function(name, begin, body.begin, body.end)
            pending += node.children
    return None


def _walk(root: Node) -> Iterator[Definition]:
    """The functions that the tree holds, in no order."""
    # A node, and the offset behind which its text begins.
    pending = [(root, 0)]
    while pending:
        node, before = pending.pop()
        wrapper = node.type in _WRAPPERS
        for child in node.children:
            kind = child.type
            if kind == "function_definition":
                body, name = child.child_by_field_name("body"), _declared(child)
                if body is not None and name is not None:
                    yield Definition(name, before, child.start_byte, body.start_byte, body.end_byte)
                # What the parser takes for the type of a function may be a class that it could not read.
                pending += [(part, part.start_byte) for part in child.children if part.type in _CLASSES]
            elif kind in _CONTAINERS:
                # Within a wrapper the definition begins where the wrapper does.
                pending.append((child, before if kind in _WRAPPERS else child.start_byte))
            if not wrapper:
                before = child.end_byte


def _declared(node: Node) -> str | None:
    """The name that a function definition gives; None where it defines no function."""
    declared = node.child_by_field_name("declarator")
    callable_ = False
    while declared is not None and declared.type != "operator_cast":
        callable_ = callable_ or declared.type == "function_declarator"
        inner = declared.child_by_field_name("declarator")
        if inner is None and declared.type in _UNNAMED_FIELDS:
            inner = next(
                (one for one in declared.named_children if one.type.endswith(("declarator", "identifier"))), None
            )
        if inner is None:
            break
        declared = inner
    if declared is None or not (callable_ or declared.type == "operator_cast"):
        return None
    name = _name(declared)
    # A macro that is called in front of a block.
    if node.child_by_field_name("type") is None and _MACRO_NAME.fullmatch(name):
        return None
    return name or None


def _name(node: Node) -> str:
    """A name without template arguments and blanks."""
    parts: list[str] = []
    left: Node | None = node
    while left is not None:
        here, left = left, None
        if here.type == "qualified_identifier":
            left = here.child_by_field_name("name")
            scope = here.child_by_field_name("scope")
            if scope is None:
                continue
            here = scope
        if here.type in _TEMPLATES:
            here = here.child_by_field_name("name") or here
        text = (here.text or b"").decode("ascii", "replace")
        if here.type == "operator_cast":
            parts.append("operator " + " ".join(text.partition("(")[0].removeprefix("operator").split()))
        else:
            parts.append("".join(text.split()))
    return "::".join(parts)
