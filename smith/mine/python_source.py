"""Kernels in Python files: functions whose decorators resolve to a kernel language's.

A helper that kernels call is decorated like a kernel, so decorated functions are all of the device code.

A history shows the same definitions again and again, so a file is split into top-level blocks and each block is
parsed once, only if some decorator in it could be meant. What cannot be split so (a ``def`` at the start of a line
within a string) is parsed as a whole.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest

from smith.mine.lines import common_start
from smith.mine.python_skeleton import skeleton
from smith.mine.remembered import Remembered
from smith.mine.source import NOTHING, Kernel, Source, main_language
from smith.syntax import parse

# Comments and long strings are skipped; so is what a formatter may add: brackets, commas, quotes, continuations.
_TOKEN = re.compile(
    r"""[A-Za-z]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)')"""
    r"""|\#[^\n]*|([^\W\d]\w*|[\d.][\w.]*|[^\s\w(),\\"'])""",
    re.DOTALL,
)
_COMMENT_LINE = re.compile(r"^[ \t]*#[^\n]*\n", re.MULTILINE)
# Looking for the end of a line is much faster than for the beginning of one.
_BLOCK = re.compile(r"\n(?:@|def\b|class\b|async\b)")
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]*(?:\((?P<many>[^)]*)\)|(?P<few>[^\n(]+))"
    r"|import[ \t]+(?P<plain>[^\n]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")
# A top-level function with nothing behind it, whose decorators are plain names or calls of plain names.
_HEAD = re.compile(r"^@([A-Za-z_][\w.]*)|^(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_TOP_LEVEL = re.compile(r"^[^\s#@)\]}]", re.MULTILINE)
_INNER = re.compile(r"\n[ \t]+@")
_LONG_QUOTES = ('"' * 3, "'" * 3)

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class _Definition:
    """A decorated function: qualified name, the names that decorate it, whole text."""

    name: str
    decorators: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Memory:
    """What was read of earlier files and is likely to be in later ones: definitions by block."""

    blocks: Remembered[tuple[str, frozenset[str]], tuple[_Definition, ...]] = field(
        default_factory=lambda: Remembered(6 << 20)
    )


def read(text: str, decorators: Mapping[str, str], memory: Memory | None = None) -> Source:
    """The kernels of a Python file. A file that this Python cannot parse has none that can be named.

    With ``memory``, reading further versions of a file takes a fraction of the time, with the same result.
    """
    known = _last_names(tuple(decorators))
    worth = _decoration(known)
    if "@" not in text or not worth.search(text):
        return NOTHING
    found: list[_Definition] = []
    for block in _blocks(text):
        if "@" in block and worth.search(block):
            definitions = _remembered(block, known, memory)
            if definitions is None:
                found = list(_definitions(text, known) or ())
                break
            found += definitions
    kernels: dict[str, Kernel] = {}
    aliases = imported_names(text) if found else {}
    for one in found:
        language = _language(one.decorators, aliases, decorators)
        if language is not None:
            earlier = kernels.get(one.name)
            kernels[one.name] = Kernel(language, earlier.text + one.text if earlier else one.text)
    return Source(main_language(kernels), kernels)


@dataclass(frozen=True)
class Located:
    """One kernel where it stands: its name is that of :func:`read`."""

    name: str
    language: str
    node: ast.FunctionDef | ast.AsyncFunctionDef


def locate(text: str, decorators: Mapping[str, str]) -> list[Located]:
    """Every kernel of a Python file with its syntax, in order; definitions of one name are listed each.

    Empty where this Python cannot parse the file.
    """
    tree = parse(text)
    if tree is None:
        return []
    aliases = imported_names(text)
    found: list[Located] = []
    for name, node in _functions(tree.body, ""):
        names = tuple(dotted for decorator in node.decorator_list for dotted in _dotted(decorator))
        language = _language(names, aliases, decorators)
        if language is not None:
            found.append(Located(name, language, node))
    return found


def imported_names(text: str) -> dict[str, str]:
    """What each imported name of a Python file stands for (``tl``: ``triton.language``)."""
    return dict(_aliases(text))


def docstring_end(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int | None:
    """The last line of a function's docstring; None where it has none."""
    return node.body[0].end_lineno if len(_without_docstring(node.body)) < len(node.body) else None


def same_code(before: str, after: str) -> bool:
    """Whether two definitions differ in comments, docstrings, whitespace and line breaks at most."""
    if before == after:
        return True
    # What no formatter touches differs in nearly every real change, and is compared much faster than syntax trees.
    if not _same_tokens(before, after):
        return False
    if _lines(before) == _lines(after):
        return True
    old, new = parse(textwrap.dedent(before)), parse(textwrap.dedent(after))
    return old is not None and new is not None and _equal(old, new)


def _same_tokens(before: str, after: str) -> bool:
    """Whether two definitions are the same but for what a formatter may add. Told by the first difference mostly."""
    start = before.rfind("\n", 0, common_start(before, after)) + 1
    # Inside of a long string, words are no code.
    if any(before.count(quotes, 0, start) % 2 for quotes in _LONG_QUOTES):
        start = 0
    return all(one == other for one, other in zip_longest(_tokens(before, start), _tokens(after, start)))


def _lines(definition: str) -> list[str]:
    """The lines that hold code. A line that looks like a comment inside of a string is in no kernel's code."""
    return [line.rstrip() for line in _COMMENT_LINE.sub("", definition).splitlines() if line and not line.isspace()]


def _tokens(definition: str, start: int) -> Iterator[str]:
    for match in _TOKEN.finditer(definition, start):
        if token := match[1] or match[2] or match[3]:
            yield token


@cache
def _last_names(decorators: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in decorators)


@cache
def _decoration(last_names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"@[^\n@]*\b(?:{'|'.join(sorted(map(re.escape, last_names)))})\b")


def _blocks(text: str) -> Iterator[str]:
    """``text`` cut in front of top-level definitions; a decorator stays with what it decorates."""
    begin, decorated = 0, text.startswith("@")
    for match in _BLOCK.finditer(text):
        start = match.start() + 1
        if not decorated:
            yield text[begin:start]
            begin = start
        decorated = match[0] == "\n@"
    yield text[begin:]


def _remembered(block: str, known: frozenset[str], memory: Memory | None) -> tuple[_Definition, ...] | None:
    found = memory.blocks.get((block, known)) if memory else None
    if found is None:
        found = _definitions(block, known)
        if memory and found is not None:
            memory.blocks.keep((block, known), found, len(block) + sum(200 + len(one.text) for one in found))
    return found


def _definitions(block: str, known: frozenset[str]) -> tuple[_Definition, ...] | None:
    """The decorated functions of a block; None where it is no complete piece of Python."""
    plain = _plain_definition(block, known)
    if plain is not None:
        return (plain,)
    outline = skeleton(block)
    tree = parse(outline) if outline is not None else None
    if tree is None and (tree := parse(block)) is None:
        return None
    lines = block.splitlines(keepends=True)
    found: list[_Definition] = []
    for name, node in _functions(tree.body, ""):
        if node.decorator_list:
            start = min(node.lineno, *(decorator.lineno for decorator in node.decorator_list))
            names = tuple(dotted for decorator in node.decorator_list for dotted in _dotted(decorator))
            text = "".join(lines[start - 1 : node.end_lineno])
            found.append(_Definition(name, names, text.rstrip("\n") + "\n"))
    return tuple(found)


def _plain_definition(block: str, known: frozenset[str]) -> _Definition | None:
    """The definition of a block that holds just one, read off its lines; None where only a parser can tell.

    ``known`` are the last names of decorators that mean something: one that is none of them may wrap one that is.
    """
    if not block.startswith("@") or _INNER.search(block) is not None:
        return None
    names: list[str] = []
    for match in _HEAD.finditer(block):
        if match[2]:
            if not any(name.rpartition(".")[2] in known for name in names):
                return None
            # What stands at the beginning of a later line follows the function, or is part of a string.
            if _TOP_LEVEL.search(block, match.end()) is not None:
                return None
            return _Definition(match[2], tuple(names), _without_tail(block) + "\n")
        names.append(match[1])
    return None


def _without_tail(block: str) -> str:
    """``block`` without blank lines and comments at its end, which belong to nothing."""
    while True:
        block = block.rstrip()
        rest, _, last = block.rpartition("\n")
        if not last.lstrip().startswith("#"):
            return block
        block = rest


def _functions(body: list[ast.stmt], scope: str) -> Iterator[tuple[str, _Function]]:
    """Every function below ``body`` with its qualified name."""
    for node in body:
        if isinstance(node, _Function):
            yield f"{scope}{node.name}", node
            yield from _functions(node.body, f"{scope}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{scope}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            for part in ("body", "orelse", "finalbody"):
                yield from _functions(getattr(node, part, []), scope)
            for handler in getattr(node, "handlers", []):
                yield from _functions(handler.body, scope)


def _aliases(text: str) -> Iterator[tuple[str, str]]:
    """What each imported name stands for, wherever in the file it is imported."""
    done = 0
    # Looking for a word is much faster than for the beginnings of lines.
    while (at := text.find("import", done)) >= 0:
        begin = max(text.rfind("\n", 0, at) + 1, done)
        match = _IMPORT.match(text, begin)
        done = match.end() if match else at + len("import")
        if match:
            yield from _imported(match)


def _imported(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    for part in _COMMENT.sub("", match["many"] or match["few"] or match["plain"] or "").split(","):
        name, *rest = part.split()[:3] or [""]
        if not name:
            continue
        if match["module"]:
            yield (rest[-1] if rest else name), f"{match['module']}.{name}".lstrip(".")
        elif rest:
            yield rest[-1], name
        else:
            yield name.split(".")[0], name.split(".")[0]


def _language(names: tuple[str, ...], aliases: Mapping[str, str], decorators: Mapping[str, str]) -> str | None:
    for dotted in names:
        head, _, tail = dotted.partition(".")
        full = f"{aliases.get(head, head)}.{tail}".rstrip(".")
        # A re-export (`from .compat import triton`) keeps the last two parts.
        for name in (full, ".".join(full.split(".")[-2:])):
            if name in decorators:
                return decorators[name]
    return None


def _dotted(node: ast.expr) -> Iterator[str]:
    """The dotted name that decorates, and those given to a wrapper such as ``functools.partial``."""
    if isinstance(node, ast.Call):
        yield from _dotted(node.func)
        for argument in node.args:
            if isinstance(argument, ast.Attribute | ast.Name):
                yield from _dotted(argument)
    elif isinstance(node, ast.Attribute | ast.Name):
        yield ast.unparse(node)


def _equal(old: object, new: object) -> bool:
    """Whether two syntax trees are equal but for docstrings. Side by side, which costs a third of two dumps."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_equal, old, new))
    if not isinstance(old, ast.AST):
        return old == new
    for name in old._fields:
        one, other = getattr(old, name, None), getattr(new, name, None)
        if name == "body" and isinstance(old, _Function | ast.ClassDef):
            one, other = _without_docstring(one), _without_docstring(other)
        if not _equal(one, other):
            return False
    return True


def _without_docstring(body: list[ast.stmt] | None) -> list[ast.stmt]:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return (body or [])[1:]
    return body or []
