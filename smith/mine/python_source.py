"""Kernels in Python files: functions whose decorators resolve to a kernel language's.

A helper that kernels call is decorated like a kernel, so decorated functions are all of the device code.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from functools import cache

from smith.mine.source import NOTHING, Kernel, Source, main_language

_TOKEN = re.compile(
    r"""[A-Za-z]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|\#[^\n]*|([^\W\d]\w*)""",
    re.DOTALL,
)

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def read(text: str, decorators: Mapping[str, str]) -> Source:
    """The kernels of a Python file. A file that this Python cannot parse has none that can be named."""
    if not _worth_parsing(text, decorators):
        return NOTHING
    tree = _parse(text)
    if tree is None:
        return NOTHING
    lines = text.splitlines(keepends=True)
    kernels: dict[str, Kernel] = {}
    aliases: dict[str, str] = {}
    for name, node in _functions(tree.body, "", aliases):
        language = _language(node, aliases, decorators)
        if language is None:
            continue
        start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        definition = "".join(lines[start - 1 : node.end_lineno])
        earlier = kernels.get(name)
        kernels[name] = Kernel(language, earlier.text + definition if earlier else definition)
    return Source(main_language(kernels), kernels)


def same_code(before: str, after: str) -> bool:
    """Whether two definitions differ in comments, docstrings, whitespace and line breaks at most."""
    if before == after:
        return True
    # Names outside of strings and comments are part of the syntax tree; most real changes show there, much cheaper.
    if _names(before) != _names(after):
        return False
    old, new = _shape(before), _shape(after)
    return old is not None and old == new


def _names(definition: str) -> list[str]:
    return [match[1] for match in _TOKEN.finditer(definition) if match[1]]


@cache
def _decoration(last_names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"@[^\n]*\b(?:{'|'.join(sorted(map(re.escape, last_names)))})\b")


def _worth_parsing(text: str, decorators: Mapping[str, str]) -> bool:
    """Whether some decorator could be one of ``decorators``: most files have none, and parsing is what costs."""
    return bool(_decoration(frozenset(name.rpartition(".")[2] for name in decorators)).search(text))


def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in somebody else's strings
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _functions(body: list[ast.stmt], scope: str, aliases: dict[str, str]) -> Iterator[tuple[str, _Function]]:
    """Every function below ``body`` with its qualified name, noting imports on the way."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            aliases.update(_imported(node))
        elif isinstance(node, _Function):
            yield f"{scope}{node.name}", node
            yield from _functions(node.body, f"{scope}{node.name}.", aliases)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{scope}{node.name}.", aliases)
        else:
            for part in ("body", "orelse", "finalbody"):
                yield from _functions(getattr(node, part, []), scope, aliases)
            for handler in getattr(node, "handlers", []):
                yield from _functions(handler.body, scope, aliases)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ImportFrom):
        for name in node.names:
            yield name.asname or name.name, f"{node.module or ''}.{name.name}".lstrip(".")
        return
    for name in node.names:
        if name.asname:
            yield name.asname, name.name
        else:
            top = name.name.split(".")[0]
            yield top, top


def _language(node: _Function, aliases: Mapping[str, str], decorators: Mapping[str, str]) -> str | None:
    for decorator in node.decorator_list:
        for dotted in _dotted(decorator):
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


def _shape(definition: str) -> str | None:
    tree = _parse(textwrap.dedent(definition))
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, _Function | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)
