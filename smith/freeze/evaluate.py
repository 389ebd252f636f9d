"""What an expression of a test stands for: a module, a function, a class or an object of one. Read, never run.

A variable stands for everything that is assigned to it anywhere in the file, so the answer is a list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from smith.freeze.modules import FOREIGN, Found, Function, Scope, World, last_name, read_import

_DEPTH = 6
_MOST = 8
_SAME_OBJECT = frozenset(
    {"to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type", "eval", "train", "requires_grad_"}
    | {"contiguous", "clone", "detach", "share_memory"}
)
"""Methods of modules and tensors that give the object itself, or one like it."""
_WRAPPERS = frozenset({"compile", "deepcopy", "copy", "partial", "jit", "script", "wraps", "device"})
"""Functions that give their first argument again, or something that is called like it."""


@dataclass(frozen=True)
class Instance:
    """An object of a class."""

    found: Found


Value = Found | Instance


class Evaluator:
    """Expressions of the file ``path`` of ``world``."""

    def __init__(self, world: World, path: str) -> None:
        self.world, self.path = world, path
        self._scope = Scope()
        self._modules: dict[str, list[str]] = {}
        self._local: dict[str, Function | ast.ClassDef] = {}
        self._known: dict[int, list[Value]] = {}
        self._origins: dict[tuple[str, str], str] = {}
        for node in ast.walk(world.tree(path) or ast.Module([], [])):
            self._read(node)

    def _read(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            read_import(node, self._scope)
            for alias in node.names:
                if not alias.asname and "." in alias.name:
                    self._modules.setdefault(alias.name.split(".")[0], []).append(alias.name)
        elif isinstance(node, ast.ImportFrom):
            read_import(node, self._scope)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and node.value is not None:
                    self._scope.assigned.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            if isinstance(node.iter, ast.List | ast.Tuple | ast.Set):
                self._scope.assigned.setdefault(node.target.id, []).extend(node.iter.elts)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    self._scope.assigned.setdefault(item.optional_vars.id, []).append(item.context_expr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._local.setdefault(node.name, node)
            for decorator in node.decorator_list:
                self._parametrize(decorator)

    def _parametrize(self, node: ast.expr) -> None:
        """``pytest.mark.parametrize("fn", [a, b])`` gives the arguments of a test."""
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("parametrize") or len(node.args) < 2:
            return
        names, values = node.args[:2]
        if not isinstance(names, ast.Constant) or not isinstance(names.value, str):
            return
        if not isinstance(values, ast.List | ast.Tuple):
            return
        split = [name.strip() for name in names.value.split(",")]
        for value in values.elts:
            if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("param"):
                parts = value.args
            else:
                parts = value.elts if len(split) > 1 and isinstance(value, ast.Tuple | ast.List) else [value]
            for name, part in zip(split, parts, strict=False):
                if isinstance(part, ast.Name | ast.Attribute | ast.Call | ast.Lambda):
                    self._scope.assigned.setdefault(name, []).append(part)

    # -- values -------------------------------------------------------------------------------------------------

    def values(self, node: ast.expr, depth: int = 0) -> list[Value]:
        """What an expression can stand for, of this tree; empty where that cannot be told."""
        if depth > _DEPTH:
            return []
        if id(node) not in self._known:
            self._known[id(node)] = []  # a variable that is made of itself
            found = dict.fromkeys(self._values(node, depth))
            self._known[id(node)] = [v for v in found if v != FOREIGN][:_MOST]
        return self._known[id(node)]

    def _values(self, node: ast.expr, depth: int) -> Iterator[Value]:
        match node:
            case ast.Name():
                yield from self._name(node.id, depth)
            case ast.Attribute():
                yield from self._attribute(node, depth)
            case ast.Call():
                yield from self._result(node, depth)
            case ast.Subscript():
                # ``kernel[grid]`` is called like the kernel; of a table of functions each may be meant.
                yield from self.values(node.value, depth + 1)
            case ast.IfExp():
                yield from self.values(node.body, depth + 1)
                yield from self.values(node.orelse, depth + 1)
            case ast.BoolOp():
                for part in node.values:
                    yield from self.values(part, depth + 1)
            case ast.List() | ast.Tuple() | ast.Set():
                for part in node.elts[:_MOST]:
                    yield from self.values(part, depth + 1)
            case ast.Dict():
                for value in node.values[:_MOST]:
                    yield from self.values(value, depth + 1)
            case ast.NamedExpr() | ast.Await():
                yield from self.values(node.value, depth + 1)

    def _name(self, name: str, depth: int) -> Iterator[Value]:
        local = self._local.get(name)
        if local is not None:
            yield Found(self.path, name, local)
        if name in self._scope.imported:
            module, level, taken = self._scope.imported[name]
            yield from self._imported(module, level, taken)
        elif local is None and name not in self._scope.assigned:
            for module, level in self._scope.stars:
                origin = self.world.locate(module, level, self.path)
                if origin is not None and self.world.exports(origin, name):
                    found = self.world.lookup(origin, name)
                    if found is not None:
                        yield self._note(found, module)
        for value in self._scope.assigned.get(name, ())[:_MOST]:
            yield from self.values(value, depth + 1)

    def _imported(self, module: str, level: int, name: str | None) -> Iterator[Value]:
        origin = self.world.locate(module, level, self.path) if module or level else None
        if name is None:
            if origin is not None:
                yield self._note(Found(origin), module)
            return
        found = self.world.lookup(origin, name) if origin is not None else None
        if found is None:
            dotted = f"{module}.{name}" if module else name
            inside = self.world.locate(dotted, level, self.path)
            found = Found(inside) if inside is not None else None
            module = dotted
        if found is not None:
            yield self._note(found, module)

    def _attribute(self, node: ast.Attribute, depth: int) -> Iterator[Value]:
        chain = _chain(node)
        for dotted in self._modules.get(chain[0], ()) if chain else ():
            if chain == dotted.split(".") and (origin := self.world.locate(dotted, 0, self.path)):
                yield self._note(Found(origin), dotted)
                return
        for owner in self.values(node.value, depth + 1):
            if isinstance(owner, Instance):
                method = self.world.method(owner.found, (node.attr,))
                if method is not None and not _is_property(method[1]):
                    yield Found(method[0].path, f"{method[0].name}.{node.attr}", method[1])
            elif owner.is_module:
                found = self.world.lookup(owner.path, node.attr)
                if found is not None:
                    inside = f".{node.attr}" if found.is_module else ""
                    yield self._note(found, f"{self.module_of(owner)}{inside}")
            elif isinstance(owner.node, ast.ClassDef):
                # ``Function.apply`` is called like ``forward`` without its context.
                names = (node.attr, "forward") if node.attr == "apply" else (node.attr,)
                method = self.world.method(owner, names)
                if method is not None:
                    yield Found(method[0].path, f"{method[0].name}.{method[1].name}", method[1])

    def _result(self, node: ast.Call, depth: int) -> Iterator[Value]:
        """What a call gives: an object of the class that is called, or what the function returns."""
        called = last_name(node.func)
        if isinstance(node.func, ast.Attribute) and called in _SAME_OBJECT:
            owners = [v for v in self.values(node.func.value, depth + 1) if isinstance(v, Instance)]
            if owners:
                yield from owners
                return
        values = self.values(node.func, depth + 1)
        for value in values:
            if isinstance(value, Instance):
                continue
            if isinstance(value.node, ast.ClassDef):
                yield Instance(value)
            elif value.node is not None and depth < _DEPTH - 2:
                yield from self._returned(value, depth)
            elif value.value:
                yield from _objects(self.world, value)
        if not values and called in _WRAPPERS and node.args:
            yield from self.values(node.args[0], depth + 1)

    def _returned(self, function: Found, depth: int) -> Iterator[Value]:
        """Objects of classes that a function makes and returns."""
        assert isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in ast.walk(function.node):
            if not isinstance(statement, ast.Return) or statement.value is None:
                continue
            if function.path == self.path:
                yield from self.values(statement.value, depth + 2)
            elif isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Name):
                made = self.world.lookup(function.path, statement.value.func.id)
                if made is not None and isinstance(made.node, ast.ClassDef):
                    yield Instance(made)

    def is_foreign(self, node: ast.expr) -> bool:
        """Whether a name, or an attribute of one, is of another library (``torch.ops`` holds a repository's own)."""
        chain = _chain(node)
        if not chain or chain[:2] == ["torch", "ops"] or chain[0] not in self._scope.imported:
            return False
        module, level, name = self._scope.imported[chain[0]]
        dotted = ".".join(part for part in (module, name) if part)
        return not level and not any(self.world.locate(m, 0, self.path) for m in (module, dotted) if m)

    # -- calls --------------------------------------------------------------------------------------------------

    def callee(self, value: Value, called: str, *, result: bool = False) -> tuple[Found, Function, int] | None:
        """The function that runs when ``value`` is called by the last name ``called``, its owner, and how many of its
        first parameters are bound. With ``result``, the one whose values the caller gets (``forward`` of a module)."""
        if isinstance(value, Instance):
            method = self.world.method(value.found, ("forward", "__call__"))
            return (*method, 1) if method else None
        if isinstance(value.node, ast.ClassDef):
            method = None if result else self.world.method(value, ("__init__", "__new__"))
            return (*method, 1) if method else None
        if "." in value.name and value.node is not None:
            owner = self.world.lookup(value.path, value.name.split(".")[0])
            if owner is None or not isinstance(owner.node, ast.ClassDef):
                return None
            free = called != "apply" and any(last_name(d) == "staticmethod" for d in value.node.decorator_list)
            return owner, value.node, 0 if free else 1
        if value.node is not None:
            return value, value.node, 0
        return self._applied(value)

    def _applied(self, value: Found) -> tuple[Found, Function, int] | None:
        """``f = Function.apply`` is called like ``forward`` without its context."""
        for expression in value.value:
            if not isinstance(expression, ast.Attribute) or expression.attr != "apply":
                continue
            if isinstance(expression.value, ast.Name):
                found = self.world.lookup(value.path, expression.value.id)
                method = self.world.method(found, ("forward",)) if found is not None else None
                if method is not None:
                    return (*method, 1)
        return None

    def keywords(self, node: ast.Call) -> tuple[list[str], bool]:
        """The keywords that a call passes, and whether there can be more than can be told."""
        names, more = [], False
        for keyword in node.keywords:
            if keyword.arg is not None:
                names.append(keyword.arg)
                continue
            expressions = [keyword.value]
            if isinstance(keyword.value, ast.Name):
                expressions = self._scope.assigned.get(keyword.value.id, [])
                more |= not expressions
            for expression in expressions:
                told = _keys(expression)
                more |= told is None
                names += told or []
        return names, more

    def module_of(self, found: Value) -> str:
        """The dotted name under which this file imports it; empty where it is not imported by name."""
        found = found.found if isinstance(found, Instance) else found
        return self._origins.get((found.path, found.name), "")

    def _note(self, found: Found, module: str) -> Found:
        if found != FOREIGN:
            self._origins.setdefault((found.path, found.name), module)
        return found


def _objects(world: World, value: Found) -> Iterator[Value]:
    """What a call of an alias (``Layer = OtherLayer``) makes."""
    for expression in value.value:
        if isinstance(expression, ast.Name):
            found = world.lookup(value.path, expression.id)
            if found is not None and isinstance(found.node, ast.ClassDef):
                yield Instance(found)


def _keys(node: ast.expr) -> list[str] | None:
    """The keys of a dictionary that is written out; None where they cannot all be told."""
    if isinstance(node, ast.Dict):
        keys = [k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        return keys if len(keys) == len(node.keys) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        return [k.arg for k in node.keywords if k.arg] if all(k.arg for k in node.keywords) else None
    if isinstance(node, ast.IfExp):
        both = (_keys(node.body), _keys(node.orelse))
        return [*both[0], *both[1]] if both[0] is not None and both[1] is not None else None
    return None


def _chain(node: ast.expr) -> list[str]:
    """The names of ``a.b.c``; empty where it starts with something else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def _is_property(node: Function) -> bool:
    return any(last_name(d) in ("property", "cached_property") for d in node.decorator_list)
