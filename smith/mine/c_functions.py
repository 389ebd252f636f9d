"""Function definitions in C-like text, by tree-sitter's C++ grammar.

What the grammar cannot read in such files are macros and extensions, and nearly all of those stand in function bodies
(launches, dispatch macros, inline assembly), in front of declarations (``CK_TILE_DEVICE``) or across conditionals. So
bodies and specifiers are blanked first, at equal offsets, and only declarations are parsed, which also takes a fraction
of the time. A body that no function of the resulting tree owns has its head parsed alone: one thing that the grammar
cannot read does not hide what stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Range, Tree

from smith.mine.c_lexical import LeftOut, Text, one_reading

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
_STOP = re.compile(rb"[{};]")
# The head of a block that may hold definitions, and its name. It is left open to the parser; too many only cost time.
_SCOPE = re.compile(
    rb"\b(?:namespace|struct|union|extern|class(?!\s*[\w.]*\s*[,>=]))\b"
    rb"(?:\s*(?:\[\[[^\]]*\]\]|alignas\s*%(args)s))*\s*([A-Za-z_][\w:]*)?" % {b"args": _ARGUMENTS}
)
_BODY_FOLLOWS = re.compile(rb"(?:\)(?:\s*\.\.\.)?|\b(?:const|noexcept|override|final|mutable)|->[^={}]*)\s*\Z")
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


@dataclass(frozen=True)
class Function:
    """One definition: offsets of its first specifier, of its body's opening brace, and behind the closing one."""

    name: str
    """Qualified, without template arguments."""
    begin: int
    body: int
    end: int


@dataclass(frozen=True)
class _Body:
    """A block without definitions: where its head begins, its opening brace, behind its closing one."""

    head: int
    begin: int
    end: int
    callable: bool
    """Whether a function's head could stand before it."""


@dataclass(frozen=True)
class _Blocks:
    """What stands in braces: bodies by their opening brace, and named scopes by extent, outermost first."""

    bodies: dict[int, _Body]
    scopes: list[tuple[int, int, str]]

    def qualified(self, name: str, at: int) -> str:
        return "::".join([*(scope for begin, end, scope in self.scopes if begin < at < end), name])


def functions(text: Text, *, words: bool = False) -> list[Function]:
    """Every function definition outside of other functions, in order. ``words``: OpenCL's or Metal's specifiers too."""
    code, left_out = one_reading(text)
    found = [_whole(one, text, left_out) for one in _functions(code, words)]
    # What the first reading left out lies within functions mostly.
    missing = [one for one in left_out if "{" in text.plain[one.begin : one.end] and not _within(one, found)]
    if missing:
        code, _ = one_reading(text, last=True)
        more = _functions(code, words)
        found += [one for one in more if any(a.begin <= one.body and one.end <= a.end for a in missing)]
    return sorted(found, key=lambda one: one.begin)


def _whole(function: Function, text: Text, left_out: list[LeftOut]) -> Function:
    """``function`` with every branch of a conditional that it ends in."""
    end = function.end
    for one in left_out:
        begin, until = one.instead
        if function.begin < begin < function.end <= until:
            end = max(end, one.begin + len(text.plain[one.begin : one.end].rstrip()))
    return replace(function, end=end) if end > function.end else function


def _within(part: LeftOut, found: list[Function]) -> bool:
    return any(one.begin <= part.begin and part.begin + 1 < one.end for one in found)


def _functions(code: bytearray, words: bool) -> list[Function]:
    plain = bytes(code)
    bodies, open_ = _take_bodies_out(code)
    declarations = bytes(code)
    for pattern in (_SPECIFIER, _UNREAD, _WORDS) if words else (_SPECIFIER, _UNREAD):
        declarations = pattern.sub(_replaced, declarations)
    blocks = _Blocks(bodies, _scopes(declarations, open_))
    tree = _parse(declarations)
    found = list(_walk(tree.root_node, plain, blocks))
    if tree.root_node.has_error:
        owned = {one.body for one in found}
        for body in bodies.values():
            if body.callable and body.begin not in owned:
                function = _alone(declarations, plain, blocks, body)
                if function is not None:
                    found.append(function)
    return found


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


def _take_bodies_out(code: bytearray) -> tuple[dict[int, _Body], list[tuple[int, int, int]]]:
    """Blank what stands in blocks that hold no definitions.

    Returns these by their opening brace, and head, beginning and end of the others.
    """
    bodies: dict[int, _Body] = {}
    closed: list[tuple[int, int, int]] = []
    open_: list[tuple[int, int]] = []
    depth = begin = 0
    # Where a head begins: behind the last statement or block, or only behind the last initializer in it.
    head = part = 0
    for stop in _STOP.finditer(bytes(code)):
        at, sign = stop.start(), stop[0]
        if depth:
            depth += (sign == b"{") - (sign == b"}")
            if depth == 0:
                callable_ = _BODY_FOLLOWS.search(code, max(part, begin - 200), begin) is not None
                # An empty block in front of a semicolon would be an initializer.
                code[begin + 1 : at] = (b";" if callable_ and at > begin + 1 else b"").ljust(at - begin - 1)
                bodies[begin] = _Body(head, begin, at + 1, callable_)
                part = at + 1
                head = part if callable_ else head
            continue
        if sign == b"{" and not _SCOPE.search(code, part, at):
            depth, begin = 1, at
            continue
        if sign == b"{":
            open_.append((part, at))
        elif sign == b"}" and open_:
            closed.append((*open_.pop(), at))
        head = part = at + 1
    closed += [(*one, len(code)) for one in open_]
    return bodies, closed


def _scopes(declarations: bytes, blocks: list[tuple[int, int, int]]) -> list[tuple[int, int, str]]:
    """The named ones of the blocks that were left open."""
    named: list[tuple[int, int, str]] = []
    for head, begin, end in blocks:
        match = _SCOPE.search(declarations, head, begin)
        if match and match[1]:
            named.append((begin, end, match[1].decode()))
    return sorted(named)


def _alone(code: bytes, plain: bytes, blocks: _Blocks, body: _Body) -> Function | None:
    """The function whose body nothing in the tree owns, from its head parsed by itself, as in a class if need be."""
    head = _ACCESS.sub(lambda match: b" " * len(match[0]), code[body.head : body.begin])
    start = _DECLARATION.match(head)
    if start is None:
        return None
    for before, after in ((b"", b"{;}"), (b"struct S {", b"{;}};")):
        tree = _parse(before + head + after)
        pending = [tree.root_node]
        while pending:
            node = pending.pop()
            if node.type == "function_definition" and (name := _declared(node)) is not None:
                begin = body.head + start.start(1)
                ink = _INK.search(plain, body.head)
                begin = min(begin, ink.start()) if ink else begin
                return Function(blocks.qualified(name, begin), begin, body.begin, body.end)
            pending += node.children
    return None


def _walk(root: Node, plain: bytes, blocks: _Blocks) -> Iterator[Function]:
    """The functions that the tree holds, in no order."""
    # A node, and the offset behind which its text begins.
    pending = [(root, 0)]
    while pending:
        node, before = pending.pop()
        wrapper = node.type in _WRAPPERS
        for child in node.children:
            kind = child.type
            if kind == "function_definition":
                function = _function(child, plain, blocks, before)
                if function is not None:
                    yield function
                # What the parser takes for the type of a function may be a class that it could not read.
                pending += [(part, part.start_byte) for part in child.children if part.type in _CLASSES]
            elif kind in _CONTAINERS:
                # Within a wrapper the definition begins where the wrapper does.
                pending.append((child, before if kind in _WRAPPERS else child.start_byte))
            if not wrapper:
                before = child.end_byte


def _function(node: Node, plain: bytes, blocks: _Blocks, before: int) -> Function | None:
    body = node.child_by_field_name("body")
    name = _declared(node)
    if body is None or name is None:
        return None
    ink = _INK.search(plain, before)
    begin = min(ink.start(), node.start_byte) if ink else node.start_byte
    known = blocks.bodies.get(body.start_byte)
    return Function(blocks.qualified(name, begin), begin, body.start_byte, known.end if known else body.end_byte)


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
