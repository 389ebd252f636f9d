"""What hidden tests use that the starting tree does not have, found by parsing both sides.

Tests and the support files that they import are read with the reference's tree below them and again with the starting
tree: what means something in the first and nothing in the second must be named in the instruction, with its signature.
What only a run can tell (names that are computed) is left to validation, unless the module that it is computed on is
new as a whole.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from smith.freeze.evaluate import Evaluator, Instance, Value
from smith.freeze.fresh import SHORT_STRING, Fresh
from smith.freeze.modules import FOREIGN, Found, Function, World, last_name, members
from smith.freeze.signatures import accepts, arities, of_class, of_function, parameter_names
from smith.records.task import InterfaceItem

_BUILTINS = frozenset(dir(builtins))
_EVERYWHERE = frozenset(
    {"apply", "backward", "bias", "bfloat16", "clone", "contiguous", "cpu", "cuda", "data", "detach", "device", "dim"}
    | {"dtype", "eps", "eval", "flatten", "float", "forward", "grad", "half", "item", "items", "keys", "max", "mean"}
    | {"min", "name", "ndim", "numel", "permute", "requires_grad", "reshape", "shape", "size", "sqrt", "squeeze"}
    | {"state", "stride", "sum", "tensor", "to", "train", "transpose", "unsqueeze", "values", "view", "weight", "zero"}
)
"""Attributes that tensors, modules and containers have: an object that is not known is one of these more likely."""


@dataclass(frozen=True)
class Interface:
    """``items`` must be named; ``unnamed`` says of what cannot be named why (``file:line: what``)."""

    items: tuple[InterfaceItem, ...] = ()
    unnamed: tuple[str, ...] = ()


@dataclass
class _Wanted:
    """One definition of the reference, and what of it the start lacks."""

    found: Found
    module: str
    whole: bool = False
    missing: dict[str, None] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)


def find_interface(
    start: World, reference: World, tests: Iterable[str], hidden: Iterable[str], changed: Iterable[str]
) -> Interface:
    """What ``tests`` (files below both worlds) and the hidden support files that they import need of the reference.

    ``hidden`` are all hidden paths, ``changed`` the paths that the reference patch changes.
    """
    search = _Search(start, reference, frozenset(hidden), tuple(sorted(changed)))
    for path in with_support(reference, tests, search.hidden):
        search.read(path)
    return search.result()


def with_support(world: World, tests: Iterable[str], hidden: frozenset[str]) -> list[str]:
    """The tests, the hidden files that they import, and the ``conftest.py`` files above them."""
    waiting, found = sorted(tests), dict[str, None]()
    while waiting:
        path = waiting.pop(0)
        if path in found or path not in world.files or not path.endswith(".py"):
            continue
        found[path] = None
        folder = path
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            if f"{folder}/conftest.py" in hidden:
                waiting.append(f"{folder}/conftest.py")
        for node in ast.walk(world.tree(path) or ast.Module([], [])):
            names: list[tuple[str, int]] = []
            if isinstance(node, ast.ImportFrom):
                names = [(node.module or "", node.level)]
                names += [(f"{node.module}.{a.name}" if node.module else a.name, node.level) for a in node.names]
            elif isinstance(node, ast.Import):
                names = [(alias.name, 0) for alias in node.names]
            origins = (world.locate(module, level, path) for module, level in names if module or level)
            waiting += [origin for origin in origins if origin in hidden]
    return list(found)


class _Search:
    def __init__(self, start: World, reference: World, hidden: frozenset[str], changed: tuple[str, ...]) -> None:
        self.start, self.reference, self.hidden, self.changed = start, reference, hidden, changed
        self.wanted: dict[tuple[str, str], _Wanted] = {}
        self.others: dict[tuple[str, ...], InterfaceItem] = {}
        self.unnamed: dict[str, None] = {}
        self.fresh = Fresh(start, reference, changed)

    def result(self) -> Interface:
        items = [self._item(one) for one in self.wanted.values()]
        named = {(i.path, i.name) for i in items}
        # A module is named by what is used of it.
        items = [i for i in items if i.kind != "module" or not any(p == i.path and n for p, n in named)]
        order = {"module": 0, "class": 1, "function": 1, "name": 2, "value": 3, "error": 4}
        items += self.others.values()
        return Interface(tuple(sorted(items, key=lambda i: (order[i.kind], i.path, i.name))), tuple(self.unnamed))

    # -- one file -----------------------------------------------------------------------------------------------

    def read(self, path: str) -> None:
        tree = self.reference.tree(path)
        if tree is None:
            return
        here, before = Evaluator(self.reference, path), Evaluator(self.start, path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(path, node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._use(here, before, node)
            elif isinstance(node, ast.Attribute):
                self._use(here, before, node)
                self._attribute(here, before, node)
            elif isinstance(node, ast.Call):
                self._call(path, here, before, node)
            elif isinstance(node, ast.Assign):
                self._unpack(here, before, node)
            elif isinstance(node, ast.With | ast.AsyncWith):
                for item in node.items:
                    self._raises(item.context_expr, node.body)
        self._values(tree)

    def _import(self, path: str, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._module(path, alias.name, 0)
            return
        module, level = node.module or "", node.level
        origin = self._module(path, module, level) if module else self.reference.locate(module, level, path)
        for alias in node.names:
            if alias.name == "*":
                new = bool(origin) and origin not in self.hidden and origin not in self.start.files
                if origin and new and self.reference.scope(origin).dynamic:
                    self.unnamed[f"{path}:{node.lineno}: takes all names of {module}, which makes them"] = None
                continue
            if origin is None:
                dotted = f"{module}.{alias.name}" if module else alias.name
                self._module(path, dotted, level)
                continue
            found = self.reference.lookup(origin, alias.name)
            if found is None or found.path in self.hidden:
                continue
            there = self.start.locate(module, level, path)
            before = self.start.lookup(there, alias.name) if there else None
            if found.path and (before is None or (before == FOREIGN and not self._known(found))):
                self._want(found, module)
            elif not found.path and there is None:
                self._name(origin, module, alias.name)

    def _module(self, path: str, module: str, level: int) -> str | None:
        """The reference's file of an imported module; wanted where the start has none."""
        origin = self.reference.locate(module, level, path)
        if origin is not None and origin not in self.hidden:
            there = self.start.locate(module, level, path) or self.start.has_package(module, level, path)
            if not there:
                self._want(Found(origin), module)
        return origin

    def _use(self, here: Evaluator, before: Evaluator, node: ast.Name | ast.Attribute) -> None:
        """A name, or an attribute of a module or class, that means nothing in the start."""
        anew = isinstance(node, ast.Attribute) and any(
            isinstance(owner, Found) and owner.is_module and self.start.lookup(owner.path, node.attr) is None
            for owner in before.values(node.value)
        )
        for value in here.values(node):
            if isinstance(value, Instance) or value.path in self.hidden or not value.path:
                continue
            if "." in value.name:  # a method: told by its class
                continue
            if not before.values(node) and (anew or not self._known(value)):
                self._want(value, here.module_of(value))

    def _known(self, found: Found) -> bool:
        """Whether the start has a definition of this name in this file."""
        if found.is_module:
            return found.path in self.start.files
        return found.path in self.start.files and self.start.scope(found.path).binds(found.name)

    def _attribute(self, here: Evaluator, before: Evaluator, node: ast.Attribute) -> None:
        """An attribute or method of an object, or of a class."""
        owners = here.values(node.value)
        for owner in owners:
            found = owner.found if isinstance(owner, Instance) else owner
            if not isinstance(found.node, ast.ClassDef) or found.path in self.hidden:
                continue
            for one in self.reference.bases(found):
                if not isinstance(one.node, ast.ClassDef) or node.attr not in members(one.node):
                    continue
                if one.path in self.hidden:
                    break
                earlier = self.start.lookup(one.path, one.name) if one.path in self.start.files else None
                if earlier is None or (
                    isinstance(earlier.node, ast.ClassDef) and self.start.member(earlier, node.attr) is not True
                ):
                    self._member(one, node.attr, new_class=earlier is None)
                break
        if not owners and node.attr not in _EVERYWHERE and not here.is_foreign(node):
            for one, is_new in self.fresh.members.get(node.attr, ()):
                self._member(one, node.attr, new_class=is_new)
            if not self.fresh.members.get(node.attr) and node.attr in self.fresh.native:
                path, signature = self.fresh.native[node.attr]
                self._other("function", path, node.attr, signature)

    def _call(self, path: str, here: Evaluator, before: Evaluator, node: ast.Call) -> None:
        called = last_name(node.func)
        self._computed(path, here, called, node)
        values = here.values(node.func)
        keywords, open_ended = here.keywords(node)
        for value in values:
            target = here.callee(value, called)
            if target is None or target[0].path in self.hidden:
                continue
            owner, function, skip = target
            earlier = self._earlier(owner, function.name)
            if earlier is None:
                if isinstance(owner.node, ast.ClassDef):
                    self._member(owner, function.name, new_class=not self._known(owner))
                continue
            lacking = accepts(earlier, len(node.args), keywords, skip, starred=_starred(node) or open_ended)
            if open_ended:
                lacking += [n for n in parameter_names(function) if n not in parameter_names(earlier)]
            able = set(parameter_names(function))
            if earlier.args.kwarg is not None:
                # What the start's ``**kwargs`` swallows is told apart by who knows the name.
                swallowed = [n for n in keywords if n not in parameter_names(earlier)]
                lacking += [n for n in swallowed if n in able or self.fresh.knows(n)]
                able |= {n for n in swallowed if function.args.kwarg is not None}
            for name in dict.fromkeys(lacking):
                if name in able:
                    self._lacks(owner, function, f"parameter `{name}`")
                elif name.isdigit() and len(function.args.args) != len(earlier.args.args):
                    self._lacks(owner, function, f"{name} positional arguments")
        if not values and called not in _BUILTINS and not here.is_foreign(node.func):
            for name in keywords:
                for found in self.fresh.parameters.get(name, ()):
                    assert isinstance(found.node, ast.FunctionDef | ast.AsyncFunctionDef)
                    self._lacks(found, found.node, f"parameter `{name}`")

    def _earlier(self, owner: Found, name: str) -> Function | None:
        """The function of this name in the start: ``owner`` itself, or a method of it."""
        if owner.path not in self.start.files:
            return None
        found = self.start.lookup(owner.path, owner.name.split(".")[0])
        if found is None or found.node is None:
            return None
        if isinstance(found.node, ast.ClassDef):
            method = self.start.method(found, (name,))
            return method[1] if method else None
        return found.node

    def _computed(self, path: str, here: Evaluator, called: str, node: ast.Call) -> None:
        """``getattr`` and the like: names that are given as strings are uses, others cannot be named."""
        place = {"getattr": 1, "hasattr": 1, "setattr": 1, "delattr": 1, "object": 1}.get(called)
        if called in ("import_module", "importorskip", "patch", "setattr") and node.args:
            text = node.args[0]
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and "." in text.value:
                module = text.value if called in ("import_module", "importorskip") else text.value.rpartition(".")[0]
                origin = self._module(path, module, 0)
                if origin and module != text.value:
                    self._string_name(origin, module, text.value.rpartition(".")[2])
        if place is None or len(node.args) <= place:
            return
        name = node.args[place]
        for value in here.values(node.args[0]):
            if isinstance(value, Instance) or not value.path or value.path in self.hidden:
                continue
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                if value.is_module:
                    self._string_name(value.path, here.module_of(value), name.value)
            elif not self._known(value) and called == "getattr":
                self.unnamed[f"{path}:{node.lineno}: {ast.unparse(node)[:80]} computes a name in a new module"] = None

    def _string_name(self, path: str, module: str, name: str) -> None:
        found = self.reference.lookup(path, name)
        if found is None or not found.path or found.path in self.hidden:
            return
        if path not in self.start.files or self.start.lookup(path, name) is None:
            self._want(found, module)

    def _unpack(self, here: Evaluator, before: Evaluator, node: ast.Assign) -> None:
        """``a, b = f(...)`` where the start's ``f`` gives another number of values."""
        target = node.targets[0]
        if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Call):
            return
        if any(isinstance(element, ast.Starred) for element in target.elts):
            return
        wanted = len(target.elts)
        called = last_name(node.value.func)
        for value in here.values(node.value.func):
            callee = here.callee(value, called, result=True)
            if callee is None or callee[0].path in self.hidden:
                continue
            owner, function, _ = callee
            earlier = self._earlier(owner, function.name)
            if earlier is None or wanted not in arities(self.reference, owner, function):
                continue
            counts = arities(self.start, owner, earlier)
            if counts and None not in counts and wanted not in counts:
                self._lacks(owner, function, f"{wanted} values returned")

    def _raises(self, node: ast.expr, body: list[ast.stmt]) -> None:
        """``pytest.raises`` of what only the reference raises."""
        if not isinstance(node, ast.Call) or not node.args:
            return
        called = last_name(node.func)
        if called not in ("raises", "warns", "deprecated_call", "assertRaises", "assertRaisesRegex", "assertWarns"):
            return
        kinds = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
        names = [ast.unparse(kind).rpartition(".")[2] for kind in kinds]
        match = next((k.value for k in node.keywords if k.arg == "match"), None)
        pattern = match.value if isinstance(match, ast.Constant) and isinstance(match.value, str) else None
        call = next((n for s in body for n in ast.walk(s) if isinstance(n, ast.Call)), None)
        subject = ast.unparse(call.func)[:60] if call is not None else "the call"
        raised = self.fresh.raised(names, pattern)
        if raised is not None:
            shown = " or ".join(f"`{name}`" for name in names)
            words = f"{shown}, with a message that matches `{pattern}`" if pattern else shown
            self._other("error", raised, subject, words)

    def _values(self, tree: ast.Module) -> None:
        """Strings that tests pass or look up and that only the reference knows."""
        contexts = _contexts(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                context = contexts.get(id(node))
                if context is not None and SHORT_STRING.fullmatch(node.value):
                    path = self.fresh.strings.get(node.value)
                    if path is not None:
                        self._other("value", path, node.value, context)

    # -- what was found -----------------------------------------------------------------------------------------

    def _want(self, found: Found, module: str) -> None:
        one = self.wanted.setdefault((found.path, found.name), _Wanted(found, module))
        one.whole, one.module = True, one.module or module

    def _name(self, path: str, module: str, name: str) -> None:
        """A name of a new module that no statement shows: it can be named, but has no signature."""
        self._other("name", path, name, "", module)

    def _member(self, owner: Found, name: str, *, new_class: bool) -> None:
        one = self.wanted.setdefault((owner.path, owner.name), _Wanted(owner, ""))
        one.members.add(name)
        if new_class:
            one.whole = True
        else:
            one.missing[f"`{name}`"] = None

    def _lacks(self, owner: Found, function: Function, what: str) -> None:
        one = self.wanted.setdefault((owner.path, owner.name), _Wanted(owner, ""))
        if isinstance(owner.node, ast.ClassDef):
            one.members.add(function.name)
            what = f"{what} of `{function.name}`"
        one.missing[what] = None

    def _other(self, kind: str, path: str, name: str, signature: str, module: str = "") -> None:
        item = InterfaceItem.model_validate(
            {"kind": kind, "path": path, "name": name, "signature": signature, "module": module}
        )
        self.others.setdefault((kind, name, signature if kind == "error" else ""), item)

    def _item(self, one: _Wanted) -> InterfaceItem:
        found, kind, signature = one.found, "name", ""
        if found.is_module:
            kind = "module"
        elif isinstance(found.node, ast.ClassDef):
            kind, signature = "class", of_class(self.reference, found, one.members, whole=one.whole)
        elif found.node is not None:
            kind, signature = "function", of_function(found.node, self.reference, found)
        elif len(found.value) == 1 and isinstance(found.value[0], ast.Constant):
            signature = f"{found.name} = {ast.unparse(found.value[0])[:80]}"
        return InterfaceItem.model_validate(
            {
                "kind": kind,
                "path": found.path,
                "module": one.module or _dotted(found.path),
                "name": found.name,
                "signature": signature,
                "missing": () if one.whole else tuple(one.missing),
            }
        )


def _contexts(tree: ast.Module) -> Mapping[int, str]:
    """For strings that are passed or looked up: as what, in words."""
    found: dict[int, str] = {}

    def note(node: ast.AST, words: str) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant):
                found.setdefault(id(inner), words)

    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = last_name(node.func)
            if called in (
                "raises",
                "warns",
                "print",
                "skip",
                "skipif",
                "xfail",
                "fail",
                "param",
                "parametrize",
                "mark",
            ):
                continue
            if called in ("setenv", "delenv", "getenv"):
                for argument in node.args[:1]:
                    note(argument, "environment variable")
                continue
            for keyword in node.keywords:
                if keyword.arg and isinstance(keyword.value, ast.Constant):
                    note(keyword.value, f"value of `{keyword.arg}` of `{called}`")
            for argument in node.args:
                if isinstance(argument, ast.Constant):
                    note(argument, f"argument of `{called}`")
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            note(node.slice, f"key of `{ast.unparse(node.value)[:60]}`")
    return found


def _starred(node: ast.Call) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in node.args)


def _dotted(path: str) -> str:
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts[1:] if parts[0] in ("src", "python", "lib") else parts)


__all__ = ["Interface", "Value", "find_interface"]
