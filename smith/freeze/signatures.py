"""Signatures out of syntax trees: written out for people, and held against a call."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from smith.freeze.modules import FOREIGN, Found, Function, World, last_name

_SHOWN_DECORATORS = frozenset({"staticmethod", "classmethod", "property", "jit", "contextmanager", "dataclass"})
_CONSTRUCTORS = ("__init__", "__new__")
_MOST_DEFAULT = 60


def of_function(node: Function, world: World | None = None, owner: Found | None = None, indent: str = "") -> str:
    """``def f(x, *, eps=1e-6) -> Tensor: ...`` with those decorators that matter to a caller.

    Without an annotation, the number of values that it returns is said where all its returns agree.
    """
    lines = [f"{indent}@{ast.unparse(d)}" for d in node.decorator_list if last_name(d) in _SHOWN_DECORATORS]
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    lines.append(f"{indent}{word} {node.name}({_arguments(node.args)}){returns}: ...")
    if not returns and world is not None and owner is not None:
        counts = arities(world, owner, node)
        if len(counts) == 1 and (count := next(iter(counts))) is not None and count > 1:
            lines[-1] += f"  # returns {count} values{_named_values(node, count)}"
    return "\n".join(lines)


def of_class(world: World, found: Found, wanted: Collection[str], *, whole: bool) -> str:
    """The head of a class with its constructor (of a new class), its fields, and the wanted methods and attributes."""
    node = found.node
    assert isinstance(node, ast.ClassDef)
    bases = ", ".join([*map(ast.unparse, node.bases), *(f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords)])
    lines = [f"@{ast.unparse(d)}" for d in node.decorator_list if last_name(d) in _SHOWN_DECORATORS]
    lines.append(f"class {node.name}{f'({bases})' if bases else ''}:")
    functions = {f.name: f for f in node.body if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)}
    names = [*(_CONSTRUCTORS if whole else ()), *(("forward", "__call__") if whole else ()), *sorted(wanted)]
    shown: set[str] = set()
    if whole:
        fields = [s for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
        lines += [f"    {ast.unparse(s.target)}: {_short(s.annotation)}{_default(s.value)}" for s in fields]
        shown |= {ast.unparse(s.target) for s in fields}
        if any(last_name(b) in ("Enum", "IntEnum", "StrEnum") for b in node.bases):
            values = [s for s in node.body if isinstance(s, ast.Assign)]
            lines += [f"    {ast.unparse(s)}" for s in values]
            shown |= {ast.unparse(s.targets[0]) for s in values}
    for name in names:
        if name in shown:
            continue
        shown.add(name)
        if name in functions:
            lines.append(of_function(functions[name], world, found, "    "))
        elif name in wanted:
            lines.append(f"    {name}: ...  # an attribute" if not name.startswith("__") else f"    {name}")
    if len(lines) == 1 or lines[-1].startswith("class "):
        lines.append("    ...")
    return "\n".join(lines)


def parameter_names(node: Function) -> list[str]:
    """All named parameters."""
    return [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def accepts(node: Function, positional: int, keywords: Iterable[str], skip: int, *, starred: bool = False) -> list[str]:
    """What a call passes that the function does not take: keywords by name, and the number of positional arguments.

    ``skip`` is how many first parameters are bound (``self``, ``ctx``).
    """
    lacking = []
    places = [*node.args.posonlyargs, *node.args.args]
    if node.args.vararg is None and not starred and positional > len(places) - skip:
        lacking.append(str(positional))
    known = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
    lacking += [name for name in keywords if name not in known and node.args.kwarg is None]
    return lacking


def arities(world: World, owner: Found, node: Function, depth: int = 0) -> set[int | None]:
    """How many values each ``return`` gives; None for one that cannot be told. Empty without any ``return``."""
    found: set[int | None] = set()
    for statement in _returns(node):
        found |= _arity(world, owner, node, statement.value, depth)
    return found


def _arity(world: World, owner: Found, node: Function, value: ast.expr | None, depth: int) -> set[int | None]:
    if value is None or isinstance(value, ast.Constant | ast.BinOp | ast.Compare):
        return {1}
    if isinstance(value, ast.Tuple):
        return {None} if any(isinstance(e, ast.Starred) for e in value.elts) else {len(value.elts)}
    if isinstance(value, ast.IfExp):
        return _arity(world, owner, node, value.body, depth) | _arity(world, owner, node, value.orelse, depth)
    if isinstance(value, ast.Name) and depth < 4:
        assigned = [
            s.value
            for s in ast.walk(node)
            if isinstance(s, ast.Assign) and any(isinstance(t, ast.Name) and t.id == value.id for t in s.targets)
        ]
        inside = [_arity(world, owner, node, v, depth + 1) for v in assigned if not isinstance(v, ast.Name)]
        return set().union(*inside) if inside else {None}
    if isinstance(value, ast.Call) and depth < 4:
        return _of_call(world, owner, value, depth)
    return {None}


def _of_call(world: World, owner: Found, call: ast.Call, depth: int) -> set[int | None]:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "apply" and isinstance(func.value, ast.Name):
        found = world.lookup(owner.path, func.value.id)
        method = world.method(found, ("forward",)) if found and found is not FOREIGN else None
        return arities(world, method[0], method[1], depth + 1) or {None} if method else {None}
    if isinstance(func, ast.Name):
        found = world.lookup(owner.path, func.id)
        if found is not None and isinstance(found.node, ast.FunctionDef) and not found.node.decorator_list:
            return arities(world, found, found.node, depth + 1) or {None}
        return {None}
    # Methods of tensors (``y.view(...)``) give one tensor mostly, but not always (``x.chunk(2)``).
    if isinstance(func, ast.Attribute) and func.attr in ("view", "reshape", "to", "contiguous", "sum", "mean"):
        return {1}
    return {None}


def _returns(node: Function) -> list[ast.Return]:
    found: list[ast.Return] = []
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        inner = waiting.pop(0)
        if isinstance(inner, ast.Return):
            found.append(inner)
        elif not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(inner)
    return found


def _named_values(node: Function, count: int) -> str:
    """The names of the returned values, where every one is a plain name."""
    for statement in _returns(node):
        value = statement.value
        if isinstance(value, ast.Tuple) and len(value.elts) == count:
            names = [e.id for e in value.elts if isinstance(e, ast.Name)]
            return f": {', '.join(names)}" if len(names) == count else ""
    return ""


def _arguments(args: ast.arguments) -> str:
    return " ".join(ast.unparse(args).split())


def _short(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _MOST_DEFAULT else "..."


def _default(node: ast.expr | None) -> str:
    return f" = {_short(node)}" if node is not None else ""
