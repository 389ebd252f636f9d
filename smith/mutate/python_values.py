"""Operators on what a kernel computes: precision, reductions, arithmetic, constants, conditions, functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from smith.mutate.edits import Edit
from smith.mutate.python_view import Function, View, argument, is_text, last_name, number

Edits = tuple[Edit, ...]

_LOWER = {"float32": ("float16", "bfloat16"), "float64": ("float32",)}
_TYPES_OF = ("triton.", "torch", "numpy", "tl.", "gl.", "ttgl.")
_REDUCTIONS = frozenset({"sum", "max", "min", "argmax", "argmin", "cumsum", "cumprod", "reduce", "mean", "softmax"})
_EPSILON = re.compile(r"(?:^|_)eps(?:ilon)?(?:_|$)", re.IGNORECASE)
_INDEX = re.compile(r"stride|BLOCK|offs|program_id|pid|arange|(?:^|\W)(?:row|col)s?(?:\W|$)", re.IGNORECASE)
_POINTER = re.compile(r"ptr|base$|^p_|_p$", re.IGNORECASE)
_MEMORY = frozenset({"load", "store", "atomic_add", "atomic_max", "atomic_min", "atomic_xchg", "atomic_cas"})
_SMALL, _FACTOR = 1e-3, 100
_OTHER_FUNCTION = {
    "exp": "exp2", "exp2": "exp", "log": "log2", "log2": "log", "sqrt": "rsqrt", "rsqrt": "sqrt", "sin": "cos",
    "cos": "sin", "floor": "ceil", "ceil": "floor",
}  # fmt: skip
_OTHER_EXTREME = {
    "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "argmax": "argmin", "argmin": "argmax",
    "atomic_max": "atomic_min", "atomic_min": "atomic_max", "amax": "amin", "amin": "amax",
}  # fmt: skip


def accumulator_lowered(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """A value kept in half the bits: ``float32`` becomes ``float16`` or ``bfloat16``, ``float64`` ``float32``."""
    if not isinstance(node, ast.Attribute) or node.attr not in _LOWER:
        return
    parent = view.parents[node]
    if not view.dotted(node).startswith(_TYPES_OF) or not isinstance(parent, ast.Call | ast.keyword):
        return
    end = view.end(node)
    for lower in _LOWER[node.attr]:
        yield (Edit(end - len(node.attr), end, lower),)


def axis_changed(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """A reduction over another axis, in functions that have more than one."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _REDUCTIONS or not _two_dimensions(function):
        return
    place = 1 if view.is_language(node.func) else 0
    axis = argument(node, "axis", place) or argument(node, "dim", place)
    value = number(axis)
    if axis is not None and isinstance(value, int):
        yield (view.replaced(axis, "1" if value == 0 else "0"),)


def epsilon_changed(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """An epsilon a hundred times as large: by name, or a constant of at most a thousandth."""
    if isinstance(view.parents[node], ast.Compare | ast.Subscript):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and _EPSILON.search(node.id):
        yield (view.replaced(node, f"({node.id} * {_FACTOR})"),)
    elif isinstance(node, ast.Constant) and type(node.value) is float and 0 < node.value <= _SMALL:
        yield (view.replaced(node, f"({view.source(node)} * {_FACTOR})"),)


def sign_flipped(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """A minus sign that is not there, of infinity too."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not view.is_plumbing(node):
        begin = view.begin(node)
        yield (Edit(begin, begin + 1, ""),)
    elif isinstance(node, ast.Constant) and node.value == "-inf":
        yield (view.replaced(node, '"inf"'),)


def plus_and_minus(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """``+`` and ``-`` confused. A pointer less its offset is left alone: it crashes at once, and tells nothing."""
    if _moves_pointer(view, node):
        return
    yield from _swapped(view, node, {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}, neutral=0)


def times_and_by(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """``*`` and ``/`` confused; in an index ``*`` becomes ``+``, which still is an index."""
    pairs = {ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _INDEX.search(view.source(node)):
        pairs = {ast.Mult: ("*", "+")}
    yield from _swapped(view, node, pairs, neutral=1)


def constant_shifted(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """A constant of arithmetic, or what masked lanes read (``other``), off by one."""
    value = number(node) if isinstance(node, ast.Constant) else None
    if value is None or 0 < abs(value) <= _SMALL or value + 1 == value or view.is_plumbing(node):
        return
    parent = view.parents[node]
    plain = isinstance(parent, ast.BinOp | ast.Compare | ast.Assign | ast.AugAssign | ast.Return | ast.UnaryOp)
    fills = isinstance(parent, ast.keyword) and parent.arg == "other"
    chosen = isinstance(parent, ast.Call) and last_name(parent.func) in ("where", "maximum", "minimum")
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow):
        return
    if plain or fills or chosen:
        yield (view.replaced(node, repr(value + 1)),)


def condition_negated(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """The other branch: a condition negated, ``==`` and ``!=`` confused, the two values of ``where`` swapped."""
    if isinstance(node, ast.If | ast.IfExp):
        yield (view.replaced(node.test, f"not ({view.source(node.test)})"),)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        if isinstance(view.parents[node], ast.If | ast.IfExp):
            return  # negated as a whole
        pair = {ast.Eq: ("==", "!="), ast.NotEq: ("!=", "==")}.get(type(node.ops[0]))
        edit = view.between(node.left, node.comparators[0], *pair) if pair else None
        if edit is not None:
            yield (edit,)
    elif isinstance(node, ast.Call) and last_name(node.func) == "where" and len(node.args) == 3:
        first, second = node.args[1:]
        if not isinstance(second, ast.Starred):
            yield view.replaced(first, view.source(second)), view.replaced(second, view.source(first))


def function_confused(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """Another function of the family: ``exp`` and ``exp2``, ``log`` and ``log2``, ``sqrt`` and ``rsqrt``, ..."""
    yield from _renamed(view, node, _OTHER_FUNCTION)


def extreme_confused(view: View, node: ast.AST, function: Function) -> Iterator[Edits]:
    """Minimum and maximum confused."""
    yield from _renamed(view, node, _OTHER_EXTREME)


def _renamed(view: View, node: ast.AST, others: dict[str, str]) -> Iterator[Edits]:
    if not isinstance(node, ast.Call):
        return
    name = last_name(node.func)
    if others.get(name) == "rsqrt" and view.dotted(node.func).startswith(("math.", "numpy.")):
        return  # they have none
    if name in others and (isinstance(node.func, ast.Attribute) or name in ("max", "min")):
        end = view.end(node.func)
        yield (Edit(end - len(name), end, others[name]),)


def _swapped(
    view: View, node: ast.AST, pairs: dict[type[ast.operator], tuple[str, str]], *, neutral: int
) -> Iterator[Edits]:
    """The operator of a binary operation or an augmented assignment replaced. Where the right side is ``neutral``
    both give the same; strings and lists have other operators."""
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
    elif isinstance(node, ast.AugAssign):
        left, right = node.target, node.value
    else:
        return
    if type(node.op) not in pairs or number(right) == neutral or view.is_plumbing(node):
        return
    if any(is_text(side) or isinstance(side, ast.List | ast.Tuple) for side in (left, right)):
        return
    edit = view.between(left, right, *pairs[type(node.op)])
    if edit is not None:
        yield (edit,)


def _moves_pointer(view: View, node: ast.AST) -> bool:
    """Whether a sum has a pointer on its left, by its name or because memory is read or written there."""
    left: ast.AST = node
    while isinstance(left, ast.BinOp | ast.AugAssign):
        left = left.left if isinstance(left, ast.BinOp) else left.target
    if _POINTER.search(last_name(left)):
        return True
    parent = view.parents[node]
    while isinstance(parent, ast.BinOp) and node is parent.left:
        node, parent = parent, view.parents[parent]
    return isinstance(parent, ast.Call) and node in parent.args[:1] and last_name(parent.func) in _MEMORY


def _two_dimensions(function: Function) -> bool:
    """Whether anything in a function has two dimensions, as far as can be seen: with one, another axis is an error."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1:
            return True
        if isinstance(node, ast.Call) and last_name(node.func) in ("dot", "trans", "dot_scaled"):
            return True
    return False
