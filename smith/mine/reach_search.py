"""The search behind :mod:`.reach`: backwards from changed kernels to whatever uses them, symbol by symbol."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from smith.mine import bindings as native_
from smith.mine.bindings import base_name
from smith.mine.codebase import EXPRESSION, Codebase
from smith.mine.imports import Code, Import
from smith.records.candidate import KernelChange, Role

_FARTHEST = 8
_NATIVE_STEPS = 5
# What so many files name or include ties none of them.
_MOST_NAMED = 12
_MOST_NATIVE = 60
_MOST_KEYS = 6
_MOST_TWINS = 3
_SHORTEST_TWIN = 8
_METHOD = re.compile(r"\n[ \t]+(?:async[ \t]+)?def[ \t]+")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_HEADERS = (".h", ".hpp", ".hh", ".cuh", ".inc")

Names = dict[str, int]
"""Local name to the targets that it leads to, as bits."""


@dataclass(frozen=True, slots=True)
class Found:
    """A test that was reached. ``distance`` counts the imports between, ``bits`` are the targets."""

    distance: int
    bits: int


@dataclass(frozen=True)
class Targets:
    """The changed kernels, one bit each."""

    labels: tuple[str, ...]
    """``path::symbol``; empty where only code beside kernels changed."""
    starts: Mapping[str, Names]
    """Path to the names at which a search begins; ``*`` is all of the file."""

    @classmethod
    def of(cls, kernels: Sequence[KernelChange]) -> Targets:
        """Number the kernels. Those without symbols count only where none has any."""
        labels: list[str] = []
        starts: dict[str, Names] = {}
        bare = not any(kernel.symbols for kernel in kernels)
        for kernel in kernels:
            for symbol in kernel.symbols or (("*",) if bare else ()):
                head = _head(kernel.path, symbol)
                names = starts.setdefault(kernel.path, {})
                names[head] = names.get(head, 0) | 1 << len(labels)
                labels.append("" if symbol == "*" else f"{kernel.path}::{symbol}")
        return cls(tuple(labels), starts)

    def names(self, bits: int) -> tuple[str, ...]:
        """The labels of a set of targets."""
        return tuple(label for index, label in enumerate(self.labels) if label and bits >> index & 1)


def _head(path: str, symbol: str) -> str:
    """The name by which a file knows a symbol: a method by its class, a C++ function without its namespaces."""
    return symbol.partition(".")[0] if path.endswith(".py") else symbol.rpartition("::")[2]


@dataclass
class _Front:
    """Names that newly lead on, by file."""

    files: dict[str, Names] = field(default_factory=dict)

    def add(self, path: str, name: str, bits: int) -> None:
        names = self.files.setdefault(path, {})
        names[name] = names.get(name, 0) | bits


class Search:
    """One search in the current tree of a code base."""

    def __init__(self, base: Codebase, targets: Targets) -> None:
        self._base = base
        self._targets = targets
        self._known: dict[str, Names] = {}
        self._found: dict[str, Found] = {}
        self._visited: dict[str, Names] = {}
        self._holding: dict[str, list[tuple[str, str, Mapping[str, object]]]] = {}

    def run(self) -> dict[str, Found]:
        """Every test, benchmark and support file that leads to a target.

        Where names lead a target to nothing, the surer ways are followed first by whole native files, then by build
        descriptions, then by definitions of the same name: a backend takes the place of what it defines again.
        """
        starts = self._targets.starts
        front, later = _Front(), _Front()
        for path, names in starts.items():
            if path in self._base.python:
                front.files[path] = self._spread(self._base.code(path), names)
            elif path in self._base.native:
                self._native(path, names, later)
        self._follow(front, later)
        for way in (self._whole_files, self._build_keys, self._twins):
            later = _Front()
            for path, names in starts.items():
                left = _only(names, ~self._reached())
                if left:
                    way(path, left, later)
            self._follow(_Front(), later)
        return self._found

    def _reached(self) -> int:
        """The targets that some test, and no mere support file, leads to."""
        return _all({path: one.bits for path, one in self._found.items() if self._base.runner(path) != "support"})

    def _follow(self, front: _Front, later: _Front) -> None:
        """Go step by step from the names of ``front``, then from those of ``later``."""
        step = 0
        while (front.files or later.files) and step <= _FARTHEST:
            following, later = later, _Front()
            for path, names in front.files.items():
                self._python(path, names, step, following)
            front, step = following, step + 1

    def _spread(self, code: Code, names: Mapping[str, int]) -> Names:
        """``names`` with ``*`` spelt out."""
        whole = names.get("*", 0)
        spread = {name: bits for name, bits in names.items() if name != "*"}
        if whole:
            for unit in code.units:
                for name in unit.defines:
                    spread[name] = spread.get(name, 0) | whole
        return spread

    def _reach(self, path: str, bits: int, distance: int) -> None:
        if bits and self._base.is_test(path):
            earlier = self._found.get(path)
            self._found[path] = Found(earlier.distance, earlier.bits | bits) if earlier else Found(distance, bits)

    def _python(self, path: str, fresh: Names, step: int, following: _Front) -> None:
        """Follow names through the statements of a Python file, and to the files that import it."""
        code = self._base.code(path)
        names, reached = code.close(fresh)
        self._reach(path, reached, max(step - 1, 0))
        known = self._known.setdefault(path, {})
        news = {name: bits & ~known.get(name, 0) for name, bits in names.items() if bits & ~known.get(name, 0)}
        if not news:
            return
        for name, bits in news.items():
            known[name] = known.get(name, 0) | bits
        chains: dict[str, list[str]] = {}
        for name in news:
            head, dot, rest = name.partition(".")
            if dot:
                chains.setdefault(head, []).append(rest)
        for importer, one, module in self._base.importers(path):
            if not module:
                _take_names(importer, one, news, chains, following)
            elif module == EXPRESSION:
                self._reach(importer, _all(news), step)
            else:
                self._take_module(importer, module, news, following, package=_is_package(path))
        self._hand_up(path, news, following)
        self._operators(path, code, news, following)

    def _take_module(self, importer: str, module: str, news: Names, following: _Front, *, package: bool) -> None:
        """``importer`` knows the module under the name ``module``."""
        users = self._base.code(importer).users
        for name, bits in news.items():
            chain = f"{module}.{name}"
            if chain in users or _is_package(importer):
                following.add(importer, chain, bits)
        # A module that is handed about may be used in any way; of a package that says too little.
        if not package and f"{module}!" in users:
            following.add(importer, f"{module}!", _all(news))

    def _hand_up(self, path: str, news: Names, following: _Front) -> None:
        """Packages give access to the modules inside of them by attribute."""
        parts = path.removesuffix("/__init__.py").removesuffix(".py").split("/")
        for depth in range(len(parts) - 1, 0, -1):
            package = "/".join([*parts[:depth], "__init__.py"])
            if package not in self._base.python:
                return
            tail = ".".join(parts[depth:])
            for importer, module, users in self._holders(package):
                inside = f"{module}.{tail}"
                if inside in users:
                    for name, bits in news.items():
                        if f"{inside}.{name}" in users:
                            following.add(importer, f"{inside}.{name}", bits)

    def _holders(self, package: str) -> list[tuple[str, str, Mapping[str, object]]]:
        """The files that know ``package`` as a module, with its name there and what they use."""
        if package not in self._holding:
            self._holding[package] = [
                (importer, module, self._base.code(importer).users)
                for importer, _, module in self._base.importers(package)
                if module and module != EXPRESSION
            ]
        return self._holding[package]

    def _operators(self, path: str, code: Code, news: Names, following: _Front) -> None:
        """Follow operators that a Python file registers, to the files that call them as ``torch.ops.library.name``."""
        named = self._base.bindings.named
        offered = [word for word in self._base.python[path].words if f"{native_.OPERATOR}{word}" in named]
        if not offered:
            return
        for defined, words in native_.wrappers(self._base.text(path), code, offered).items():
            if bits := news.get(defined, 0):
                for word in words:
                    self._call_operator(word, bits, following)

    def _call_operator(self, word: str, bits: int, following: _Front) -> None:
        for caller in self._base.bindings.named.get(f"{native_.OPERATOR}{word}", ()):
            for chain in self._base.code(caller).users:
                if chain.startswith("torch.ops.") and chain.endswith(f".{word}"):
                    following.add(caller, chain, bits)

    # Native code.

    def _native(self, path: str, names: Names, following: _Front) -> None:
        """Follow names through C-like files, and to the Python files that wrap them."""
        leading: Names = {}
        named: Names = {}
        for file, functions in self._through_native(path, names).items():
            named[base_name(file)] = _all(functions)
            for name, bits in functions.items():
                leading[name] = leading.get(name, 0) | bits
        for name, function in self._base.bindings.python_names(leading).items():
            named[name] = leading[function]
        self._wrap(named, following)

    def _whole_files(self, path: str, names: Names, following: _Front) -> None:
        """Templates are instantiated by macros and generators that no name leads through: every binding of the files
        that include the file, then."""
        if path in self._base.native:
            files = self._includers_of(path)
            bound = (name for file in files for _, name in self._base.native[file].bound)
            found = {*filter(native_.telling, bound), *map(base_name, files)}
            self._wrap(dict.fromkeys(found, _all(names)), following)

    def _build_keys(self, path: str, names: Names, following: _Front) -> None:
        """Build descriptions that list the file, one that includes it, or files of its folder."""
        if path not in self._base.native:
            return
        folders = path.split("/")[1:-1][-2:]  # a folder at the top holds all kinds of things
        ways = [[base_name(file) for file in self._includers_of(path)], *([f"{folder}/"] for folder in folders[::-1])]
        for listed in ways:
            keys = {key for name in listed for key in self._base.bindings.keys(name)}
            if 0 < len(keys) <= _MOST_KEYS and self._wrap(dict.fromkeys(keys, _all(names)), following):
                return

    def _twins(self, path: str, names: Names, following: _Front) -> None:
        """Public definitions elsewhere of a name that leads: chosen at run time in place of each other."""
        mask = _all(names)
        for file, known in list(self._known.items()):
            mine = {name: bits & mask for name, bits in known.items() if bits & mask}
            if not mine or self._base.is_test(file):
                continue
            for name, bits in {**mine, **self._methods(file, mine)}.items():
                if len(name) < _SHORTEST_TWIN or name.startswith("_") or not name.isidentifier():
                    continue
                twins = self._base.definers(name) - {file}
                if len(twins) <= _MOST_TWINS:
                    for twin in twins:
                        following.add(twin, name, bits)

    def _methods(self, file: str, names: Names) -> Names:
        """Methods of classes that lead, as far as they use what leads: a backend may be a class of functions."""
        code = self._base.code(file)
        text = self._base.text(file)
        found: Names = {}
        for unit in code.units:
            block = text[unit.begin : unit.end]
            if "class " not in block[:400]:
                continue
            for method in _METHOD.split(block)[1:]:
                name = _IDENTIFIER.match(method)
                bits = _all({used: names[used] for used in _IDENTIFIER.findall(method) if used in names})
                if name and bits:
                    found[name[0]] = found.get(name[0], 0) | bits
        return found

    def _through_native(self, path: str, names: Names) -> dict[str, Names]:
        """The names that lead on in ``path`` and in the C-like files that see them."""
        visited: dict[str, Names] = {}
        front = {path: self._spread(self._base.native_code(path), names)}
        for step in range(_NATIVE_STEPS):
            following = _Front()
            for file, fresh in front.items():
                closed, reached = self._base.native_code(file).close(fresh)
                if file != path:
                    self._reach(file, reached, step - 1)
                known = visited.setdefault(file, {})
                news = {name: bits & ~known.get(name, 0) for name, bits in closed.items()}
                news = {name: bits for name, bits in news.items() if bits}
                known.update({name: known.get(name, 0) | bits for name, bits in news.items()})
                if not news or (file != path and not reached):
                    if file != path and not reached:
                        visited.pop(file)
                    continue
                for seer, seen in self._seers(file, news):
                    if seer not in visited and len(visited) < _MOST_NATIVE:
                        for name in seen:
                            following.add(seer, name, news[name])
            front = following.files
        return visited

    def _seers(self, path: str, names: Names) -> Iterator[tuple[str, Collection[str]]]:
        """The C-like files that see ``names`` of ``path``: those that include it see all, and those that include a
        header with it what that header declares."""
        includers = self._base.bindings.includers
        direct = includers.get(base_name(path), set()) - {path}
        if len(direct) <= _MOST_NATIVE:
            yield from ((seer, names) for seer in sorted(direct))
        if path.endswith(_HEADERS):
            return
        for header in self._base.native[path].includes:
            same = includers.get(base_name(header), set()) - {path} - direct
            if 0 < len(same) <= _MOST_NAMED:
                for file in sorted(self._base.bindings.files.get(base_name(header), ())):
                    declared = names.keys() & set(_IDENTIFIER.findall(self._base.text(file)))
                    yield from ((seer, declared) for seer in sorted(same) if declared)

    def _includers_of(self, path: str) -> list[str]:
        """``path`` and the C-like files that include it, directly or not."""
        files = {path: None}
        pending = [path]
        while pending and len(files) < _MOST_NATIVE:
            for file in sorted(self._base.bindings.includers.get(base_name(pending.pop(0)), ())):
                if file not in files and not self._base.is_test(file):
                    files[file] = None
                    pending.append(file)
        return list(files)

    def _wrap(self, names: Mapping[str, int], following: _Front) -> bool:
        """Hand on to the Python files that hold one of ``names``; whether there are any."""
        named = self._base.bindings.named
        holders: dict[str, list[str]] = {}
        for name in names:
            for word in (name, f"{native_.OPERATOR}{name}"):
                paths = named.get(word, ())
                if len(paths) <= _MOST_NAMED:
                    # What builds everything is no wrapper of anything.
                    for path in (one for one in paths if self._base.role(one) is not Role.BUILD):
                        holders.setdefault(path, []).append(name)
        wrapped = False
        for path, held in holders.items():
            code = self._base.code(path)
            for defined, words in native_.wrappers(self._base.text(path), code, held).items():
                wrapped = True
                bits = _all({word: names[word] for word in words})
                if defined:
                    following.add(path, defined, bits)
                self._reach(path, bits, 0)
        return wrapped


def _take_names(
    importer: str, one: Import, news: Names, chains: Mapping[str, Sequence[str]], following: _Front
) -> None:
    """``importer`` takes a name, or all of them, from the module."""
    if one.name == "*":
        for name, bits in news.items():
            if not name.startswith("_") and not name.endswith("!"):
                following.add(importer, name, bits)
        return
    if bits := news.get(one.name, 0):
        following.add(importer, one.bound, bits)
    for rest in chains.get(one.name, ()):
        following.add(importer, f"{one.bound}.{rest}", news[f"{one.name}.{rest}"])


def _only(names: Mapping[str, int], bits: int) -> Names:
    return {name: some & bits for name, some in names.items() if some & bits}


def _all(names: Mapping[str, int]) -> int:
    bits = 0
    for more in names.values():
        bits |= more
    return bits


def _is_package(path: str) -> bool:
    return path.rpartition("/")[2] == "__init__.py"
