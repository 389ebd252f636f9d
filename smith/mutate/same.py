"""Whether two versions of a file are the same program, and whether one can be read at all."""

from __future__ import annotations

import ast

from smith.mine import c_lexical
from smith.syntax import parse

_SCOPES = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def parses(path: str, data: bytes | None) -> bool:
    """Whether this Python can parse a Python file; other files are taken as they are."""
    return data is None or not path.lower().endswith(".py") or parse(data) is not None


def same_program(path: str, one: bytes | None, other: bytes | None, suffixes: frozenset[str]) -> bool:
    """Whether two versions differ in comments, docstrings and layout at most. ``suffixes`` name C-like files."""
    if one == other:
        return True
    if one is None or other is None:
        return not (one or other or b"").strip()
    suffix = "." + path.lower().rpartition(".")[2]
    if suffix == ".py":
        trees = parse(one), parse(other)
        return None not in trees and outline(trees[0]) == outline(trees[1])
    if suffix in suffixes:
        return c_lexical.code(one.decode("utf-8", "replace")) == c_lexical.code(other.decode("utf-8", "replace"))
    return one.split() == other.split()


def outline(tree: ast.Module | None) -> str:
    """A syntax tree without docstrings, as text."""
    assert tree is not None
    for node in ast.walk(tree):
        if isinstance(node, _SCOPES) and node.body and isinstance(node.body[0], ast.Expr):
            value = node.body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                node.body[0] = ast.Pass()
    return ast.dump(tree)
