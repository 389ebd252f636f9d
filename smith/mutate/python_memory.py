"""Operators on what a kernel reads and writes: masks, boundaries, strides, atomics, barriers, loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise

from smith.mutate.edits import Edit
from smith.mutate.python_view import Function, View, argument, last_name

Edits = tuple[Edit, ...]

_MASKED = {"load": 1, "store": 2, "atomic_add": 2, "atomic_max": 2, "atomic_min": 2, "atomic_xchg": 2}
"""Calls with a mask, and the place of it."""
_SHIFTED = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
_BARRIERS = frozenset({"debug_barrier", "barrier", "thread_barrier", "fence_async_shared", "async_wait"})
_LOOPS = frozenset({"range", "static_range"})


def mask_removed(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """A load, store or atomic without its mask (with what it reads instead), or without its boundary check."""
    if not isinstance(node, ast.Call) or not view.is_language(node.func):
        return
    name = last_name(node.func)
    place = _MASKED.get(name)
    if place is None:
        return
    mask = argument(node, "mask", place)
    if mask is not None and not _is_none(mask):
        other = argument(node, "other", place + 1) if name == "load" else None
        yield tuple(view.replaced(one, "None") for one in (mask, other) if one is not None)
    check = next((k.value for k in node.keywords if k.arg == "boundary_check"), None)
    if check is not None and view.source(check) != "()":
        padding = next((k.value for k in node.keywords if k.arg == "padding_option"), None)
        edits = [view.replaced(check, "()"), *([view.replaced(padding, '""')] if padding is not None else [])]
        yield tuple(edits)


def boundary_shifted(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """``<`` becomes ``<=``, ``>`` becomes ``>=``, and the other way: one too many, or one too few."""
    if not isinstance(node, ast.Compare):
        return
    for (left, right), op in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
        if type(op) in _SHIFTED:
            edit = view.between(left, right, *_SHIFTED[type(op)])
            if edit is not None:
                yield (edit,)


def loop_shortened(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """A loop that ends one before its bound."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _LOOPS or not node.args:
        return
    if any(isinstance(one, ast.Starred) for one in node.args):
        return
    bound = node.args[0] if len(node.args) == 1 else node.args[1]
    yield (view.replaced(bound, f"({view.source(bound)}) - 1"),)


def stride_swapped(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """The stride of another tensor or dimension: in a kernel its next stride parameter, in a call two neighbours."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and "stride" in node.id.lower():
        strides = [name for name in _parameters(function) if "stride" in name.lower()]
        # What a call hands on is swapped there.
        if node.id in strides and len(strides) > 1 and not isinstance(view.parents[node], ast.Call):
            yield (view.replaced(node, strides[(strides.index(node.id) + 1) % len(strides)]),)
    if isinstance(node, ast.Call):
        yield from _neighbours(view, node.args)


def atomic_made_plain(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """An atomic addition that only stores: what others added is lost."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return
    call = node.value
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "atomic_add" or not view.is_language(call.func):
        return
    end = view.end(call.func)
    edits = [Edit(end - len("atomic_add"), end, "store")]
    for keyword in call.keywords:
        if keyword.arg in ("sem", "scope"):
            comma = view.text.rfind(",", 0, view.begin(keyword))
            edits.append(Edit(comma, view.end(keyword), ""))
    if len(call.args) <= 3:  # behind the mask come the order and the scope
        yield tuple(edits)


def barrier_removed(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """No barrier. The interpreter runs one program after the other and cannot tell: not planted for it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if last_name(call.func) in _BARRIERS and view.is_language(call.func):
            yield (view.replaced(node, "pass"),)


def _parameters(function: Function) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _neighbours(view: View, arguments: Sequence[ast.expr]) -> Iterator[Edits]:
    for one, other in pairwise(arguments):
        texts = view.source(one), view.source(other)
        if texts[0] != texts[1] and all("stride" in text.lower() for text in texts):
            yield view.replaced(one, texts[1]), view.replaced(other, texts[0])


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
