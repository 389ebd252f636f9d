"""The Python modules of one tree: what each defines, and what a name means through imports. Read, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from smith.mine.blobs import Blobs
from smith.mine.imports import Modules
from smith.syntax import parse

LARGEST = 2_000_000
"""Bytes of a file that is still parsed."""
_DEPTH = 12

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Scope:
    """What the statements of a module bind at its top level, those in ``if`` and ``try`` blocks too."""

    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    assigned: dict[str, list[ast.expr]] = field(default_factory=dict)
    imported: dict[str, tuple[str, int, str | None]] = field(default_factory=dict)
    """Local name to module, level of a relative import, and the name taken from it (None: the module itself)."""
    stars: list[tuple[str, int]] = field(default_factory=list)
    public: tuple[str, ...] | None = None
    """``__all__``, where it is a plain list."""
    dynamic: bool = False
    """Whether names can appear that no statement shows: ``__getattr__``, ``globals()``, a computed ``__all__``."""

    def binds(self, name: str) -> bool:
        return name in self.functions or name in self.classes or name in self.assigned or name in self.imported

    def names(self) -> set[str]:
        return {*self.functions, *self.classes, *self.assigned, *self.imported}


@dataclass(frozen=True)
class Found:
    """What a name means: a definition in a file. Without ``node`` and ``value`` it is the module itself."""

    path: str
    name: str = ""
    node: Function | ast.ClassDef | None = None
    value: tuple[ast.expr, ...] = ()

    @property
    def is_module(self) -> bool:
        return not self.name


FOREIGN = Found("", "?")
"""Of another library, or of a module that makes its names while it runs: nothing can be said."""


def last_name(node: ast.expr) -> str:
    """The last name of ``a.b.c`` or of a call of it; empty for other expressions."""
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


class World:
    """The Python files of one tree, given as path to blob id. Files are read and parsed when first asked for."""

    def __init__(self, blobs: Blobs, files: Mapping[str, str]) -> None:
        self.files = files
        self._blobs = blobs
        self._modules = Modules()
        self._trees: dict[str, ast.Module | None] = {}
        self._scopes: dict[str, Scope] = {}
        for path in files:
            if path.endswith(".py"):
                self._modules.add(path)

    def text(self, path: str) -> str:
        """The text of a file; empty where there is none, or its content is missing or too large."""
        oid = self.files.get(path)
        data = self._blobs.read([oid]).get(oid) if oid else None
        return (data or b"").decode("utf-8", "replace")

    def tree(self, path: str) -> ast.Module | None:
        """The syntax tree of a file of this tree."""
        if path not in self._trees:
            self._trees[path] = parse(self.text(path)) if path in self.files else None
        return self._trees[path]

    def scope(self, path: str) -> Scope:
        """What a file binds."""
        if path not in self._scopes:
            tree = self.tree(path)
            self._scopes[path] = read_scope(tree.body) if tree else Scope(dynamic=path in self.files)
        return self._scopes[path]

    def locate(self, module: str, level: int, at: str) -> str | None:
        """The file of a module that the file ``at`` imports; None where it is not of this tree."""
        folder = str(PurePosixPath(at).parent)
        return self._modules.resolve(module, level, "" if folder == "." else folder)

    def has_package(self, module: str, level: int, at: str) -> bool:
        """Whether a folder without ``__init__.py`` holds modules of that name."""
        if level or not module:
            return False
        tail = module.replace(".", "/") + "/"
        return any(path.startswith(tail) or f"/{tail}" in path for path in self.files if path.endswith(".py"))

    def lookup(self, path: str, name: str, depth: int = 0) -> Found | None:
        """What ``name`` means in the file ``path``. None: surely nothing; :data:`FOREIGN`: it cannot be told."""
        if depth > _DEPTH:
            return FOREIGN
        scope = self.scope(path)
        if name in scope.classes:
            return Found(path, name, scope.classes[name])
        if name in scope.functions:
            return Found(path, name, scope.functions[name])
        if name in scope.assigned:
            return Found(path, name, None, tuple(scope.assigned[name]))
        if name in scope.imported:
            return self._imported(path, scope.imported[name], depth)
        if path.endswith("__init__.py"):
            inside = self.locate(name, 1, path)
            if inside is not None:
                return Found(inside)
        foreign = scope.dynamic
        for module, level in scope.stars:
            origin = self.locate(module, level, path)
            foreign |= origin is None
            if origin is not None and origin != path and self.exports(origin, name):
                found = self.lookup(origin, name, depth + 1)
                if found is not None and found != FOREIGN:
                    return found
                foreign |= found == FOREIGN
        return FOREIGN if foreign else None

    def exports(self, path: str, name: str) -> bool:
        """Whether ``from module import *`` takes this name."""
        public = self.scope(path).public
        return name in public if public is not None else not name.startswith("_")

    def _imported(self, path: str, target: tuple[str, int, str | None], depth: int) -> Found | None:
        module, level, name = target
        origin = self.locate(module, level, path)
        if origin is None:
            if level and name is not None and not module:
                inside = self.locate(name, level, path)
                return Found(inside) if inside else None
            if name is not None and (inside := self.locate(f"{module}.{name}" if module else name, level, path)):
                return Found(inside)
            return None if level else FOREIGN
        if name is None:
            return Found(origin)
        if origin == path:
            inside = self.locate(name, 1, path)
            return Found(inside) if inside else None
        return self.lookup(origin, name, depth + 1)

    def bases(self, found: Found, depth: int = 0) -> Iterator[Found]:
        """The class itself and its bases of this tree, nearest first; :data:`FOREIGN` for each other one."""
        if not isinstance(found.node, ast.ClassDef) or depth > _DEPTH:
            return
        yield found
        for base in found.node.bases:
            if isinstance(base, ast.Name):
                if base.id == "object":
                    continue
                origin = self.lookup(found.path, base.id)
                if origin is not None and isinstance(origin.node, ast.ClassDef) and origin.node is not found.node:
                    yield from self.bases(origin, depth + 1)
                    continue
            yield FOREIGN

    def method(self, found: Found, names: Sequence[str]) -> tuple[Found, Function] | None:
        """The first of these methods that a class or one of its bases in this tree defines."""
        for one in self.bases(found):
            if isinstance(one.node, ast.ClassDef):
                own = {f.name: f for f in one.node.body if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)}
                for name in names:
                    if name in own:
                        return one, own[name]
        return None

    def member(self, found: Found, name: str) -> bool | None:
        """Whether a class has an attribute or method. None: a base class that is not here may have it."""
        foreign = False
        for one in self.bases(found):
            if not isinstance(one.node, ast.ClassDef):
                foreign = True
            elif name in members(one.node):
                return True
        return None if foreign else False


def members(node: ast.ClassDef) -> set[str]:
    """Methods and attributes of a class: what its body binds, and what its methods set or register on ``self``."""
    found: set[str] = set()
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
        elif isinstance(statement, ast.Assign):
            found |= {t.id for target in statement.targets for t in ast.walk(target) if isinstance(t, ast.Name)}
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found.add(statement.target.id)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            if isinstance(inner.value, ast.Name) and inner.value.id in ("self", "cls", "ctx"):
                found.add(inner.attr)
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute | ast.Name):
            called = inner.func.attr if isinstance(inner.func, ast.Attribute) else inner.func.id
            if called in ("register_buffer", "register_parameter", "add_module", "setattr"):
                found |= {a.value for a in inner.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    return found


def read_scope(body: Iterable[ast.stmt]) -> Scope:
    """What the statements of a module bind at its top level."""
    scope = Scope()
    for node in _statements(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope.functions[node.name] = node
            scope.dynamic |= node.name == "__getattr__"
        elif isinstance(node, ast.ClassDef):
            scope.classes[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            read_import(node, scope)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            _read_assignment(node, scope)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            scope.dynamic |= "globals()" in ast.unparse(node.value.func)
        elif isinstance(node, ast.For | ast.With):
            scope.dynamic |= any(
                isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in ("globals", "setattr")
                for n in ast.walk(node)
            )
    return scope


def read_import(node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
    """Note what an import binds."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                scope.imported[alias.asname] = (alias.name, 0, None)
            else:
                scope.imported[alias.name.split(".")[0]] = (alias.name.split(".")[0], 0, None)
        return
    for alias in node.names:
        if alias.name == "*":
            scope.stars.append((node.module or "", node.level))
        else:
            scope.imported[alias.asname or alias.name] = (node.module or "", node.level, alias.name)


def _read_assignment(node: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: Scope) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        for name in (n.id for n in ast.walk(target) if isinstance(n, ast.Name)):
            if name == "__all__":
                plain = isinstance(node, ast.Assign) and _strings(node.value)
                scope.public = tuple(plain) if plain else None
                continue
            scope.assigned.setdefault(name, [])
            if isinstance(target, ast.Name) and node.value is not None:
                scope.assigned[name].append(node.value)
        if isinstance(target, ast.Subscript) and "globals()" in ast.unparse(target.value):
            scope.dynamic = True


def _strings(node: ast.expr) -> list[str]:
    if not isinstance(node, ast.List | ast.Tuple):
        return []
    found = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    return found if len(found) == len(node.elts) else []


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that a module runs when it is imported, without the bodies of functions and classes."""
    for node in body:
        yield node
        for name in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _statements(getattr(node, name, ()))
        for handler in getattr(node, "handlers", ()):
            yield from _statements(handler.body)
