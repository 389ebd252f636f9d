"""What is known of the source files of one tree after another: imports, uses, bindings.

Facts are read once a blob; indices over them are kept up to date by what differs between two trees.
"""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Literal, TypeVar

from smith.git.repository import Repository
from smith.mine import bindings as native_
from smith.mine.bindings import Bindings, Native
from smith.mine.blobs import Blobs
from smith.mine.imports import Code, Import, Modules, find_imports, last_name, read_code
from smith.mine.listing import Listing
from smith.mine.rules import Rules
from smith.records.candidate import Role

Runner = Literal["pytest", "script", "cpp", "benchmark", "support"]

EXPRESSION = "*"
"""Stands for the local name of a module that only an expression holds."""
TEST_ROLES = frozenset({Role.TEST, Role.TEST_SUPPORT, Role.BENCHMARK})
_SKIPPED_ROLES = frozenset({Role.VENDORED, Role.DOCS, Role.CI})
_LARGEST_BUILD = 300_000
_AT_ONCE = 100
# So many versions of files are kept, those of the current tree among them.
_FACTS = 3000
_CODES = 1600
_NATIVE_CODES = 120
_ROLES = 50_000

_PUBLIC = re.compile(r"\n(?:def|class)[ \t]+([A-Za-z]\w{7,})")
_ROUTINE = re.compile(r"def[ \t]+test\w*\((?P<given>\s*(?:self\b\s*,?\s*)?\))?")
_CASES = re.compile(r"^[ \t]*(?:import|from)[ \t]+(?:pytest|unittest|absltest|parameterized)\b", re.MULTILINE)
_MAIN = ("if __name__", "argparse", "click.command")

K = TypeVar("K")
V = TypeVar("V")


class _Recent(Generic[K, V]):
    """The most recently used of what was computed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: K, value: V) -> V:
        self._kept[key] = value
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return value


@dataclass(frozen=True, slots=True)
class Python:
    """What is kept of every Python file of a tree."""

    imports: tuple[Import, ...] = ()
    """Without those that are surely of other libraries."""
    words: frozenset[str] = frozenset()
    defines: tuple[str, ...] = ()
    """Public functions and classes at the top; none of tests."""
    runner: Runner = "support"
    """What a test of this content is run by."""

    @property
    def breadth(self) -> int:
        """How many names it takes from elsewhere: what tests much is tied to no one kernel."""
        return len(self.imports)


class Codebase:
    """The source files of the tree that :meth:`move_to` was last called with. A context manager."""

    def __init__(self, repo: Repository, rules: Rules) -> None:
        self.python: dict[str, Python] = {}
        self.native: dict[str, Native] = {}
        self.modules = Modules()
        self.bindings = Bindings()
        self._rules = rules
        self._listing = Listing(repo)
        self._blobs = Blobs(repo, largest=rules.limits.largest_source)
        self._roles: dict[str, Role | None] = {}
        self._definers: dict[str, set[str]] = {}
        self._mentions: dict[str, dict[str, None]] = {}
        self._importers: dict[str, dict[str, tuple[tuple[str, Import, str], ...]]] = {}
        """What was found by last name and path; an importer that changes spoils its words only."""
        self._python_facts: _Recent[tuple[str, bool], Python] = _Recent(_FACTS)
        self._native_facts: _Recent[str, Native] = _Recent(_FACTS)
        self._codes: _Recent[str, Code] = _Recent(_CODES)
        self._native_codes: _Recent[str, Code] = _Recent(_NATIVE_CODES)

    def __enter__(self) -> Codebase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listing.__exit__(kind, value, trace)
        self._blobs.__exit__(kind, value, trace)

    def __contains__(self, path: str) -> bool:
        """Whether the tree holds a file of this path, of whatever kind."""
        return path in self._listing.blobs

    def role(self, path: str) -> Role | None:
        """The role that the path tells."""
        if path not in self._roles:
            if len(self._roles) >= _ROLES:
                self._roles.clear()
            self._roles[path] = self._rules.role(path)
        return self._roles[path]

    def is_test(self, path: str) -> bool:
        """Whether the file is a test, a benchmark or what supports them."""
        return self.role(path) in TEST_ROLES

    def runner(self, path: str, role: Role | None = None) -> Runner:
        """What the test at ``path`` is run by, by its role (default: that of its path) and content."""
        role = role or self.role(path)
        if role is Role.BENCHMARK:
            return "benchmark"
        if path.endswith(".py"):
            told = self.python[path].runner if path in self.python else "support"
            return told if role is Role.TEST or told == "script" else "support"
        if path.endswith(".sh"):
            return "script" if role is Role.TEST else "support"
        return "cpp" if path in self.native and self.native[path].runs else "support"

    def code(self, path: str) -> Code:
        """The statements of a Python file of the tree."""
        oid = self._listing.blobs[path]
        kept = self._codes.get(oid)
        if kept is None:
            text = self.text(path)
            kept = self._codes.put(oid, read_code(text, find_imports(text)))
        return kept

    def native_code(self, path: str) -> Code:
        """The definitions of a C-like file of the tree."""
        oid = self._listing.blobs[path]
        return self._native_codes.get(oid) or self._native_codes.put(oid, native_.read_native_code(self.text(path)))

    def text(self, path: str) -> str:
        """The text of a file of the tree; empty where its content is missing here or too large."""
        oid = self._listing.blobs[path]
        return _text(self._blobs.read([oid])[oid])

    def definers(self, name: str) -> set[str]:
        """The Python files, tests left out, that define a public function or class of this name."""
        return self._definers.get(name, set())

    def importers(self, path: str) -> Sequence[tuple[str, Import, str]]:
        """The Python files that import the Python file at ``path`` or a name from it.

        Each with the import and the local name of the module: empty where a name is taken from it, EXPRESSION where it
        has none.
        """
        found = self._importers.setdefault(last_name(path), {})
        if path not in found:
            found[path] = tuple(self._find_importers(path))
        return found[path]

    def _find_importers(self, path: str) -> Iterator[tuple[str, Import, str]]:
        last = last_name(path)
        for importer in self._mentions.get(last, ()):
            folder = importer.rpartition("/")[0]
            for one in self.python[importer].imports:
                if importer == path:
                    continue
                if one.name:
                    if self.modules.resolve(one.module, one.level, folder) == path:
                        yield importer, one, ""
                    elif one.name == last and self._submodule(one, folder) == path:
                        yield importer, one, one.bound
                    continue
                # ``import a.b.c`` gives a, a.b and a.b.c, each under its own name; with an alias the last only.
                whole = one.module
                if one.bound != whole:
                    if self.modules.resolve(whole, one.level, folder) == path:
                        yield importer, one, one.bound or EXPRESSION
                    continue
                while whole:
                    if whole.rpartition(".")[2] == last and self.modules.resolve(whole, 0, folder) == path:
                        yield importer, one, whole
                    whole = whole.rpartition(".")[0]

    def _submodule(self, one: Import, folder: str) -> str | None:
        dotted = f"{one.module}.{one.name}" if one.module else one.name
        return self.modules.resolve(dotted, one.level, folder)

    def move_to(self, tree: str) -> None:
        """Make ``tree`` the current one. Raises as :meth:`Listing.move_to` does."""
        changes = {path: oid for path, oid in self._listing.move_to(tree).items() if self._is_read(path)}
        if any((oid is None) == (path in self.python) for path, oid in changes.items() if path.endswith(".py")):
            self._importers.clear()  # with other files an import may mean another one
        unread: list[tuple[str, str]] = []
        for path, oid in changes.items():
            self._remove(path, gone=oid is None)
            if oid is not None and not self._add(path, oid):
                unread.append((path, oid))
        for start in range(0, len(unread), _AT_ONCE):
            some = unread[start : start + _AT_ONCE]
            data = self._blobs.read(oid for _, oid in some)
            for path, oid in some:
                self._read(path, oid, data[oid])
                self._add(path, oid)

    def _is_read(self, path: str) -> bool:
        if path.endswith(".json"):
            return True
        return path.endswith((".py", *native_.SUFFIXES)) and self.role(path) not in _SKIPPED_ROLES

    def _read(self, path: str, oid: str, data: bytes | None) -> None:
        if path.endswith(".json"):
            if data is not None and len(data) <= _LARGEST_BUILD and (built := native_.read_build(data)):
                self.bindings.built[path] = built
        elif path.endswith(".py"):
            text, is_test = _text(data), self.is_test(path)
            words = native_.words(text, is_test=is_test)
            imports = tuple(one for one in find_imports(text) if not one.foreign)
            runner = _runner(text) if is_test else "support"
            defines = () if is_test else tuple(map(sys.intern, _PUBLIC.findall(text)))
            self._python_facts.put((oid, is_test), Python(imports, words, defines, runner))
        else:
            self._native_facts.put(oid, native_.read_native(_text(data)))

    def _add(self, path: str, oid: str) -> bool:
        """Enter a file into the indices; false where its blob has not been read."""
        if path.endswith(".py"):
            facts = self._python_facts.get((oid, self.is_test(path)))
            if facts is None:
                return False
            self.python[path] = facts
            self.modules.add(path)
            self.bindings.add_words(path, facts.words)
            for name in facts.defines:
                self._definers.setdefault(name, set()).add(path)
            for word in _import_words(path, facts.imports):
                self._mentions.setdefault(word, {})[path] = None
                self._importers.pop(word, None)
        elif not path.endswith(".json"):
            native = self._native_facts.get(oid)
            if native is None:
                return False
            self.native[path] = native
            self.bindings.add_native(path, native)
        return path in self.python or path in self.native

    def _remove(self, path: str, *, gone: bool) -> None:
        if (facts := self.python.pop(path, None)) is not None:
            if gone:
                self.modules.remove(path)
            self.bindings.remove_words(path, facts.words)
            for name in facts.defines:
                self._definers[name].discard(path)
            for word in _import_words(path, facts.imports):
                self._mentions[word].pop(path, None)
                if not self._mentions[word]:
                    del self._mentions[word]
                self._importers.pop(word, None)
        elif (native := self.native.pop(path, None)) is not None:
            self.bindings.remove_native(path, native)
        self.bindings.built.pop(path, None)


def _import_words(path: str, imports: Sequence[Import]) -> set[str]:
    """The last names of every module that the imports of the file at ``path`` may mean."""
    words: set[str] = set()
    for one in imports:
        if one.name:
            words.add(one.name)
            words.add(one.module.rpartition(".")[2])
        else:
            words.update(one.module.split("."))
        if one.level and not one.module:
            words.add("/".join(path.split("/")[: -one.level]).rpartition("/")[2])
    return words - {"", "*"}


def _runner(text: str) -> Runner:
    """``script`` where nothing can be collected by pytest and there is a main.

    A function named like a test whose arguments nobody gives (no pytest in the file) is called by that main.
    """
    routines = list(_ROUTINE.finditer(text))
    if routines and (_CASES.search(text) or any(one["given"] is not None for one in routines)):
        return "pytest"
    if any(word in text for word in _MAIN):
        return "script"
    return "pytest" if routines else "support"


def _text(data: bytes | None) -> str:
    return "" if data is None or b"\0" in data[:8000] else data.decode("utf-8", "replace").replace("\r\n", "\n")
