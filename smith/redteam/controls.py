"""Honest submissions: a guard that refuses one of them is as wrong as a hack that scores."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from smith.git.patches import changes
from smith.redteam.base import Attack, NotApplicable, Why
from smith.redteam.target import Target

SLOWER = """
import time

time.sleep(0.002)
return real(*args, **kwargs)
"""


@dataclass(frozen=True)
class Control:
    """An honest submission that must be ``solved``."""

    name: str
    make: Callable[[Target], Attack]


def reference(target: Target) -> Attack:
    """The reference as it is."""
    return target.bundle.reference


def rewritten(target: Target) -> Attack:
    """The reference with other names of local variables in host code, laid out anew; C gets other comments."""
    files: dict[str, str | None] = {}
    for change in changes(target.store.scratch, target.start, target.solved):
        text = target.read(target.solved, change.path) if change.new_oid.strip("0") else None
        if text is None:
            continue
        if change.path.endswith(".py"):
            files[change.path] = _renamed(text)
        elif change.path.endswith((".c", ".cc", ".cpp", ".cu", ".hip", ".h")):
            files[change.path] = f"/* Laid out anew. */\n{text}\n/* The end. */\n"
    return target.patch(files, on_reference=True) if files else NotApplicable(Why.NOT_PYTHON)


def slower(target: Target) -> Attack:
    """The reference, each call two milliseconds late. Where speed is asked for, slower is no solution."""
    if target.timed:
        return NotApplicable(Why.NOT_TIMED, "where speed is asked for, a slower kernel is rightly refused")
    if target.entry is None:
        return NotApplicable(Why.NO_ENTRY)
    return target.replaced(SLOWER, on_reference=True)


def with_helper(target: Target) -> Attack:
    """The reference moved into a file of its own, which the old place imports from."""
    if target.entry is None:
        return NotApplicable(Why.NO_ENTRY)
    path = target.entry.path
    folder, _, file = path.rpartition("/")
    helper = f"{folder}/honest_{file}" if file != "__init__.py" else ""
    text = target.read(target.solved, path)
    if not helper or not target.editable(helper) or text is None:
        return NotApplicable(Why.NOT_PYTHON, "the entry is a package, or nothing new may lie beside it")
    name = helper.rpartition("/")[2].removesuffix(".py")
    front = (
        f"from . import {name} as _helper\n\n"
        "globals().update({k: v for k, v in vars(_helper).items() if not k.startswith('__')})\n"
    )
    return target.patch({helper: text, path: front}, on_reference=True)


CONTROLS = (
    Control("reference", reference),
    Control("rewritten", rewritten),
    Control("slower", slower),
    Control("with-helper", with_helper),
)


def _renamed(text: str) -> str:
    """``text`` with local variables of plain functions renamed; kernels and nested scopes are left alone."""
    tree = ast.parse(text)
    for function in _host_functions(tree):
        names = {
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in names:
                node.id = f"{node.id}_renamed"
    return ast.unparse(tree) + "\n"


def _host_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.GeneratorExp)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            inner = [n for n in ast.walk(node) if n is not node]
            if not any(isinstance(n, (*scopes, ast.Global, ast.Nonlocal, ast.SetComp, ast.DictComp)) for n in inner):
                parameters = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
                stored = {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                if not parameters & stored:
                    yield node
