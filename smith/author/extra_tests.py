"""What an extra test may be, told from its syntax before anything runs it: behaviour is checked, not source text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from smith.freeze.modules import last_name
from smith.syntax import parse

LIBRARIES = frozenset(
    {"__future__", "collections", "contextlib", "dataclasses", "functools", "itertools", "math", "numpy", "pytest"}
    | {"random", "torch", "triton", "typing", "warnings"}
)
_NEVER = frozenset(
    {"ast", "builtins", "ctypes", "dis", "gc", "glob", "httpx", "importlib", "inspect", "io", "linecache", "os"}
    | {"multiprocessing", "pathlib", "pickle", "requests", "shutil", "signal", "socket", "subprocess", "sys"}
    | {"tempfile", "threading", "time", "tokenize", "urllib"}
)
"""Not even where upstream's own tests import them: they read source, files, the clock or other processes."""
_CALLS = frozenset(
    {"open", "exec", "eval", "compile", "__import__", "globals", "locals", "vars", "input", "breakpoint"}
)
_ATTRIBUTES = frozenset(
    {"read_text", "read_bytes", "getsource", "getsourcelines", "getsourcefile", "system", "popen", "skip", "skipif"}
    | {"xfail", "importorskip", "__code__", "__globals__", "__subclasses__", "__builtins__", "src"}
)
_ASSERTS = re.compile(r"assert|check|verify|close|raises|warns|equal", re.IGNORECASE)


def allowed_imports(upstream: Iterable[ast.Module | None]) -> tuple[str, ...]:
    """The top-level modules that an extra test may import: common ones, and those of upstream's own tests."""
    found = {name for tree in upstream if tree is not None for name, level in _imports(tree) if not level}
    return tuple(sorted((found | LIBRARIES) - _NEVER))


def faults(content: str, allowed: Iterable[str]) -> list[str]:
    """What is wrong with an extra test, a line each."""
    tree = parse(content)
    if tree is None:
        return ["is no Python that can be parsed"]
    may = set(allowed)
    found = [f"imports {name}, which it may not" for name, level in _imports(tree) if not level and name not in may]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _CALLS:
            found.append(f"line {node.lineno} uses {node.id}")
        elif isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            found.append(f"line {node.lineno} uses {node.attr}")
    tests = list(_tests(tree))
    if not tests:
        found.append("has no test function")
    helpers = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    found += [f"{test.name} checks nothing" for test in tests if not _checks(test, helpers)]
    return list(dict.fromkeys(found))


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Top-level name and level of each import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0], node.level


def _tests(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test") else [node]
        yield from (one for one in inner if isinstance(one, ast.FunctionDef) and one.name.startswith("test"))


def _checks(test: ast.FunctionDef, helpers: set[str]) -> bool:
    """Whether a test can fail by what it sees: an assertion, or a call of something that checks."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call) and (
            _ASSERTS.search(last_name(node)) or last_name(node) in helpers - {test.name}
        ):
            return True
    return False
