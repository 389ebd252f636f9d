"""What a Python file imports, defines and uses, and which file of a tree an import means.

Import statements are found by a pattern and parsed one by one (``ast``), so that a file which this Python cannot parse
still tells its imports. Names are read by a pattern too, from text without strings and comments: a syntax tree costs
ten times as much, and a local name that happens to be a global's only ties a little too much.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from smith.syntax import parse

# Patterns begin with a line end rather than with ``^``, which costs several times as much; texts get one in front.
_IMPORT = re.compile(
    r"\n[ \t]*(from[ \t]+[.\w]+[ \t]+import[ \t]*(?:\([^)]*\)|(?:[^\n\\(]|\\\n)+)|import[ \t]+\w[^\n;#]*)"
)
_CALL = re.compile(r"\b(?:import_module|importorskip|__import__)\(\s*[\"'](\.*\w+(?:\.\w+)*)[\"']")
_CALLS = ("import_module", "importorskip", "__import__")
_ASSIGNED = re.compile(r"[ \t]*(\w+)[ \t]*=[^=]*\Z")
# One of the literals and comments whose content must not be taken for code. All begin with a character that is rare.
_NOISE = re.compile(
    r"[\"'#](?:(?<=#)[^\n]*|(?<=\")(?:\"\"(?:[^\\\"]|\\.|\"(?!\"\"))*(?:\"{3}|\Z)|(?:[^\"\\\n]|\\.)*\"?)"
    r"|(?<=')(?:''(?:[^\\']|\\.|'(?!''))*(?:'{3}|\Z)|(?:[^'\\\n]|\\.)*'?))",
    re.DOTALL,
)
_NOT_NEWLINE = re.compile(r"[^\n]+")
# A line that begins a top-level statement; closing brackets and later clauses belong to what is above.
_STATEMENT = re.compile(r"\n(?!(?:else|elif|except|finally)\b)([^\s#)\]}])")
_DEFINITION = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")
_DECORATED = re.compile(r"(?:@[^\n]*\n(?:[ \t)\]}][^\n]*\n|\n)*)*")
# Definitions and assignments of a statement; a line that ends in a comma is an argument.
_ASSIGNMENT = re.compile(r"(\w+(?:[ \t]*,[ \t]*\w+)*)(?:\.\w+|\[[^\]\n]*\])*[ \t]*(?::[^=\n]+)?=(?!=)")
_INNER = re.compile(
    rf"^[ \t]+(?:(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|{_ASSIGNMENT.pattern}(?![^\n]*,[ \t]*$))", re.MULTILINE
)
_COMPOUND = re.compile(r"(?:if|try|with|for|while|else|elif|async)\b")
# What begins with a dot belongs to an expression, not to a name.
_CHAIN = re.compile(r"\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_IMPORTING = ("from ", "import ", "from\t", "import\t")
_ROOTS = ("src", "python", "lib")
_FOREIGN = frozenset(sys.stdlib_module_names) | {"torch", "triton", "numpy", "pytest", "einops", "pandas", "jax"}
# A name of these cannot come from an import with a star; they would fill memory.
_COMMON = frozenset({*keyword.kwlist, *dir(builtins), "self", "cls"})


@dataclass(frozen=True, slots=True)
class Import:
    """One name that an import statement binds, wherever in the file it stands."""

    module: str
    """Dotted, without leading dots; may be empty in ``from . import x``."""
    level: int
    """Leading dots."""
    name: str
    """What is imported from the module: empty for the module itself, ``*`` for all of it."""
    bound: str
    """The local name, dotted for ``import a.b``; empty where an expression holds the module."""

    @property
    def foreign(self) -> bool:
        """Whether it is surely no file of a kernel library: the standard library, torch, triton."""
        return not self.level and self.module.partition(".")[0] in _FOREIGN


def find_imports(text: str) -> tuple[Import, ...]:
    """The imports of a file, without repeats: statements, and ``import_module`` with a literal."""
    found: dict[Import, None] = {}
    for statement in _IMPORT.findall(f"\n{text}"):
        found.update(dict.fromkeys(_statement(statement)))
    if any(call in text for call in _CALLS):
        for match in _CALL.finditer(text):
            plain = match[1].lstrip(".")
            assigned = _ASSIGNED.match(text[text.rfind("\n", 0, match.start()) + 1 : match.start()])
            found[Import(plain, len(match[1]) - len(plain), "", assigned[1] if assigned else "")] = None
    return tuple(found)


@lru_cache(maxsize=8192)
def _statement(text: str) -> tuple[Import, ...]:
    tree = parse(text.strip())
    if tree is None:
        return ()  # prose that begins like a statement
    found: list[Import] = []
    for node in tree.body[:1]:
        if isinstance(node, ast.ImportFrom):
            found += [
                Import(node.module or "", node.level, alias.name, alias.asname or alias.name) for alias in node.names
            ]
        elif isinstance(node, ast.Import):
            found += [Import(alias.name, 0, "", alias.asname or alias.name) for alias in node.names]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Unit:
    """One top-level statement. ``begin`` and ``end`` are offsets into the text of the file."""

    defines: tuple[str, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Code:
    """The top-level statements of a file, and which of them use a name."""

    units: tuple[Unit, ...]
    users: Mapping[str, tuple[int, ...]] = field(repr=False)
    """Dotted name, and each of its beginnings, to the units that use it; ``name!`` where nothing follows the name."""

    def close(self, leading: Mapping[str, int]) -> tuple[dict[str, int], int]:
        """Follow ``leading`` (name to set of targets, as bits) through the statements that use them.

        Returns every name of the file that leads on, and the targets that any statement leads to.
        """
        names = dict(leading)
        reached = 0
        pending = list(names)
        while pending:
            name = pending.pop()
            bits = names[name]
            for index in self.users.get(name, ()):
                reached |= bits
                for defined in self.units[index].defines:
                    if bits & ~names.get(defined, 0):
                        names[defined] = names.get(defined, 0) | bits
                        pending.append(defined)
        return names, reached


def without_literals(text: str) -> str:
    """``text`` with blanks in place of strings and comments, every line where it was."""
    return _NOISE.sub(_blank, text)


def read_code(text: str, imports: Iterable[Import]) -> Code:
    """The statements of a file with ``imports``. Only names that it imports or defines count as uses."""
    plain = without_literals(text)
    units = list(_units(plain))
    star = False
    kept: set[str] = {name for unit in units for name in unit.defines}
    dropped: set[str] = set()
    for one in imports:
        star = star or (one.name == "*" and not one.foreign)
        (dropped if one.foreign else kept).add(one.bound.partition(".")[0])
    dropped -= kept
    users: dict[str, dict[int, None]] = {}
    for index, unit in enumerate(units):
        block = plain[unit.begin : unit.end]
        if block.startswith(_IMPORTING):
            continue
        own = unit.defines[0] if len(unit.defines) == 1 else None
        for chain in _chains(block):
            head, dot, _ = chain.partition(".")
            if not head:
                continue
            if head in kept or (star and head not in _COMMON and head not in dropped) or chain.startswith("torch.ops."):
                if head == own:
                    continue
                if not dot:
                    users.setdefault(sys.intern(f"{chain}!"), {})[index] = None
                while chain:
                    users.setdefault(sys.intern(chain), {})[index] = None
                    chain = chain.rpartition(".")[0]
    return Code(tuple(units), {name: tuple(indices) for name, indices in users.items()})


@lru_cache(maxsize=3000)
def _chains(block: str) -> tuple[str, ...]:
    """The names in a statement. Versions of a file share most of theirs."""
    return tuple(map(sys.intern, set(_CHAIN.findall(block))))


def _blank(match: re.Match[str]) -> str:
    return _NOT_NEWLINE.sub(lambda line: " " * len(line[0]), match[0]) if "\n" in match[0] else " " * len(match[0])


def _units(plain: str) -> Iterable[Unit]:
    begin, decorated = 0, False
    for match in _STATEMENT.finditer(f"\n{plain}"):
        here = match.start()  # of the added line end, so of the statement itself in ``plain``
        if not decorated and here > begin:
            yield _unit(plain, begin, here)
            begin = here
        decorated = match[1] == "@"
    yield _unit(plain, begin, len(plain))


def _after_decorators(block: str) -> int:
    decorators = _DECORATED.match(block)
    return decorators.end() if decorators else 0


def _unit(plain: str, begin: int, end: int) -> Unit:
    block = plain[begin:end]
    if definition := _DEFINITION.match(block, _after_decorators(block)):
        return Unit((sys.intern(definition[1]),), begin, end)
    names: list[str] = []
    if assignment := _ASSIGNMENT.match(block):
        names = assignment[1].split(",")
    elif _COMPOUND.match(block):
        names = [name for defined, assigned in _INNER.findall(block) for name in (defined or assigned).split(",")]
    return Unit(tuple(dict.fromkeys(sys.intern(name.strip()) for name in names)), begin, end)


class Modules:
    """The Python files of a tree by the names under which they are imported."""

    def __init__(self) -> None:
        self._by_last: dict[str, set[str]] = {}
        self._paths: set[str] = set()
        self._known: dict[tuple[str, int, str], str | None] = {}

    def add(self, path: str) -> None:
        """A file appeared."""
        if path not in self._paths:
            self._paths.add(path)
            self._by_last.setdefault(last_name(path), set()).add(path)
            self._known.clear()

    def remove(self, path: str) -> None:
        """A file is gone."""
        if path in self._paths:
            self._paths.discard(path)
            self._by_last[last_name(path)].discard(path)
            self._known.clear()

    def resolve(self, module: str, level: int, folder: str) -> str | None:
        """The file that ``module`` means in a file of ``folder``; None where it is none of this tree.

        An absolute name is looked up from every folder that can be on the path: the top, ``src`` and the like, folders
        that are no package, and the importing file's own.
        """
        key = (module, level, folder)
        if key not in self._known:
            self._known[key] = self._relative(module, level, folder) if level else self._absolute(module, folder)
        return self._known[key]

    def _relative(self, module: str, level: int, folder: str) -> str | None:
        parts = folder.split("/") if folder else []
        if level - 1 > len(parts):
            return None
        return self._file([*parts[: len(parts) - (level - 1)], *(module.split(".") if module else [])])

    def _file(self, parts: list[str]) -> str | None:
        for path in (f"{'/'.join(parts)}.py", "/".join([*parts, "__init__.py"])):
            if path in self._paths:
                return path
        return None

    def _absolute(self, module: str, folder: str) -> str | None:
        parts = module.split(".")
        tail = "/".join(parts)
        best: tuple[int, int, str] | None = None
        for path in self._by_last.get(parts[-1], ()):
            whole = path.removesuffix("/__init__.py").removesuffix(".py")
            if whole != tail and not whole.endswith(f"/{tail}"):
                continue
            root = whole[: -len(tail)].rstrip("/")
            own = bool(root) and (folder == root or folder.startswith(f"{root}/"))
            if root and not own and not self._is_root(root, path, parts):
                continue
            # Python looks beside a script first; of the other roots the outermost is meant.
            rank = (0 if folder == root else 1, root.count("/") + bool(root), path)
            if best is None or rank < best:
                best = rank
        return best[2] if best else None

    def _is_root(self, root: str, path: str, parts: list[str]) -> bool:
        """Whether ``root`` may be on the path of files that lie elsewhere."""
        if f"{root}/__init__.py" in self._paths:
            return False
        # A lone module beside other scripts is theirs.
        return len(parts) > 1 or root in _ROOTS or ("/" not in root and path.endswith("/__init__.py"))


def last_name(path: str) -> str:
    """The last part of a Python file's dotted name."""
    folder, _, name = path.rpartition("/")
    return folder.rpartition("/")[2] if name == "__init__.py" else name.removesuffix(".py")
