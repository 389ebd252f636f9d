"""How Python comes to native code: bindings, build descriptions, and the words by which a wrapper names them.

Three facts carry from a C-like file to a Python file, and none is certain: the name under which a function is bound
(``m.def("name", &function)``, ``extern "C"``), the file's own name in a Python file that builds or loads it, and the
key of a JSON build description that lists it. Names that every library uses say nothing, and are left out.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from smith.mine.imports import Code, Unit

SUFFIXES = (".cu", ".cuh", ".hip", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".hh", ".inc", ".cl", ".metal", ".s")
"""Of files that are taken for native code."""
TEMPLATE = ".jinja"
OPERATOR = "torch.ops."
"""In front of a word that a Python file calls as an operator, whatever its library."""

_SHORTEST = 5
_GENERIC = frozenset(
    {"forward", "backward", "launch", "launcher", "kernel", "kernels", "apply", "invoke", "compute", "dispatch"}
    | {"execute", "operator", "process", "reduce", "block_reduce", "warp_reduce", "convert", "store", "input"}
    | {"output", "device", "float", "half", "bfloat16", "double", "stream", "quant", "module"}
)
_SUFFIX = re.compile(r"\.(?:cu|cuh|hip|cpp|cc|cxx|hpp|h|cl|metal|s)(?!\w)")
_SOURCE_FOLDER = re.compile(r"([\w-]+/)[\w-]+\.(?:cu|hip|cpp|cc|cxx|py)\b")
_STEM = re.compile(r"[\w-]+\Z")
_INCLUDE = re.compile(r"#[ \t]*include[ \t]*[<\"]([^>\"\n]+)")
_BINDING = re.compile(
    r"\b(?:def|impl|def_static)\([\s\\]*\"(?:\w+::)?(?P<name>\w+)[^\"\n]*\"[\s\\]*,[\s\\]*(?:[\w:]+\([\s\\]*)?"
    r"&?[\s\\]*(?P<function>[A-Za-z_][\w:]*)"
)
_RUNS = re.compile(r"\b(?:(?:TYPED_)?TEST(?:_[FP]|_CASE)?|int\s+main)\s*\(")
_WORD = re.compile(r"[\"'](?:\w+::)?([A-Za-z_]\w{4,})[\"']")
_OPERATOR = re.compile(r"\btorch\.ops\.\w+\.(\w{5,})")
_ATTRIBUTE = re.compile(r"\.([A-Za-z_]\w{4,})\s*\(")
_EXTENSION = ("_C.", "_C ", "cpp_extension", "load_inline", "load_library", "CDLL", "torch.ops", "tvm_ffi", "pybind")
_STUBS = ("...\n", " pass\n")
_DEF = re.compile(r"\ndef[ \t]+(\w{5,})")
_STUB = re.compile(r"(?:\.\.\.|\bpass|\braise NotImplementedError\S*)\s*\Z")
_STUB_TAIL = 200
# What a binding is taken from: an operator library, a private module, something called like an extension.
_RECEIVER = re.compile(r"(?:torch\.ops\.\w+|\b_[A-Za-z]\w*|\w*(?:lib|ext|ops|_C|cuda|hip)\w*)\.\Z")
_RECEIVER_LENGTH = 80
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NOISE = re.compile(r"//(?:[^\n\\]|\\.)*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)'", re.DOTALL)
_DEFINE = re.compile(r"#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\\n|\\.)*)")
_DIRECTIVE = re.compile(r"#(?:[^\n\\]|\\\n|\\.)*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w+")
_BRACE = re.compile(r"[{}]")
_TRANSPARENT = re.compile(r"(?:\bnamespace\b[\w\s:]*|\bextern\s+(?:\"\s*\"|\"C\"|\S*))\s*\Z")
_TYPE = re.compile(r"\b(?:struct|class|union)\b(?:\s+__\w+__(?:\([^)]*\))?)?\s+([A-Za-z_]\w*)[^()=]*\Z")
_QUALIFIER = re.compile(
    r"\b(?:__\w+__|alignas|decltype|noexcept|requires|[A-Z][A-Z0-9_]{3,})\s*\((?:[^()]|\([^()]*\))*\)"
)
_FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\(")
_ANGLES = re.compile(r"<[^<>]*>")


def telling(name: str) -> bool:
    """Whether a name is long and particular enough to tie two files by it."""
    return len(name) >= _SHORTEST and name.lower() not in _GENERIC


@dataclass(frozen=True, slots=True)
class Native:
    """What is kept of every C-like file of a tree."""

    includes: tuple[str, ...] = ()
    bound: tuple[tuple[str, str], ...] = ()
    """Function and the name under which Python sees it."""
    runs: bool = False
    """Whether it has a ``main`` or tests of a C++ test library."""


def read_native(text: str) -> Native:
    """Includes and bindings of a C-like file."""
    bound: dict[tuple[str, str], None] = {}
    if "def(" in text or "impl(" in text:
        for match in _BINDING.finditer(_COMMENT.sub(" ", text)):
            bound[(sys.intern(match["function"].rpartition(":")[2]), sys.intern(match["name"]))] = None
    includes = tuple(dict.fromkeys(sys.intern(name) for name in _INCLUDE.findall(text)))
    runs = ("main" in text or "TEST" in text) and _RUNS.search(text) is not None
    return Native(includes, tuple(bound), runs)


def read_native_code(text: str) -> Code:
    """The functions, types and macros of a C-like file and what each uses, as far as braces tell them apart."""
    plain = _NOISE.sub(lambda match: " " if match[0][0] == "/" else '" "', text)
    units: list[Unit] = []
    users: dict[str, dict[int, None]] = {}

    def add(name: str, block: str) -> None:
        index = len(units)
        units.append(Unit((sys.intern(name),), 0, 0))
        for used in set(_IDENTIFIER.findall(block)):
            if used != name:
                users.setdefault(sys.intern(used), {})[index] = None

    for match in _DEFINE.finditer(plain):
        add(match[1], match[2])
    for name, block in _blocks(_DIRECTIVE.sub("", plain)):
        add(name, block)
    return Code(tuple(units), {name: tuple(indices) for name, indices in users.items()})


def _blocks(plain: str) -> Iterator[tuple[str, str]]:
    """Name and text of every braced definition that is not inside of another; namespaces are looked into."""
    begin, depth, start = 0, 0, 0
    name: str | None = None
    for brace in _BRACE.finditer(plain):
        if brace[0] == "{":
            if depth == 0:
                header = plain[begin : brace.start()].rpartition(";")[2]
                if _TRANSPARENT.search(header):
                    begin = brace.end()
                    continue
                name, start = _name(header), brace.start() - len(header)
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                if name:
                    yield name, plain[start : brace.end()]
                begin = brace.end()
        else:
            begin = brace.end()


def _name(header: str) -> str | None:
    if found := _TYPE.search(header):
        return found[1]
    plain = _QUALIFIER.sub(" ", header)
    while (shorter := _ANGLES.sub(" ", plain)) != plain:
        plain = shorter
    function = _FUNCTION.search(plain)
    return function[1] if function else None


def read_build(data: bytes) -> dict[str, tuple[str, ...]]:
    """What a JSON build description lists: base name of a native file, or a folder of sources with a slash behind its
    name, to the keys under which it stands."""
    if not _SUFFIX.search(data.decode("utf-8", "replace")):
        return {}
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, dict[str, None]] = {}
    for key, value in whole.items() if isinstance(whole, dict) else ():
        if isinstance(key, str) and telling(key):
            listed = json.dumps(value)
            for name in (*_named_files(listed), *_SOURCE_FOLDER.findall(listed)):
                found.setdefault(name, {})[key] = None
    return {name: tuple(keys) for name, keys in found.items()}


def _named_files(text: str) -> Iterator[str]:
    """Base names of native files that a text holds. Found by their suffix, which is rare."""
    for suffix in _SUFFIX.finditer(text):
        if stem := _STEM.search(text, max(0, suffix.start() - 120), suffix.start()):
            yield stem[0] + suffix[0]


def words(text: str, *, is_test: bool) -> frozenset[str]:
    """The words by which a Python file may name native code. A test's own strings are no names of bindings."""
    found: set[str] = set()
    if OPERATOR in text:
        found.update(f"{OPERATOR}{name}" for name in _OPERATOR.findall(text))
    found.update(_named_files(text))
    if not is_test:
        found.update(_WORD.findall(text))
        if any(word in text for word in _EXTENSION):
            found.update(_ATTRIBUTE.findall(text))
        if any(line in text for line in _STUBS):
            found.update(_DEF.findall(text))
    return frozenset(map(sys.intern, found))


def wrappers(text: str, code: Code, names: Collection[str]) -> dict[str, set[str]]:
    """What is defined around each of ``names`` in a Python file: defined name to the names that it wraps.

    A statement wraps a name where it holds it as a string, takes it from an extension or from ``torch.ops``, or is a
    function without a body of that name. A mere list of names wraps none: it must call something.
    """
    found: dict[str, set[str]] = {}
    begins = [unit.begin for unit in code.units]
    for name in names:
        at = text.find(name)
        while at >= 0:
            end = at + len(name)
            if not text[end : end + 1].isidentifier() or text[end : end + 1] == "":
                unit = code.units[bisect_right(begins, at) - 1]
                if "(" in text[unit.begin : unit.end] and _wraps(text, at, end, unit):
                    for defined in unit.defines or ("",):
                        found.setdefault(defined, set()).add(name)
            at = text.find(name, end)
    return found


def _wraps(text: str, at: int, end: int, unit: Unit) -> bool:
    """Whether ``text[at:end]`` is a mention that ties."""
    before = text[at - 1 : at]
    if before in ('"', "'", "/", ":"):
        return text.startswith(('"', "'", f'{TEMPLATE}"', f"{TEMPLATE}'"), end)
    if before == ".":
        return _RECEIVER.search(text, max(0, at - _RECEIVER_LENGTH), at) is not None
    if unit.begin <= at and text.endswith(("\ndef ", "\nasync def "), 0, at):
        return _STUB.search(text, max(at, unit.end - _STUB_TAIL), unit.end) is not None
    return False


@dataclass(slots=True)
class Bindings:
    """The native side of a tree by the words that tie it; kept up to date file by file."""

    includers: dict[str, set[str]] = field(default_factory=dict)
    """Base name of a header to the files that include one of that name."""
    files: dict[str, set[str]] = field(default_factory=dict)
    """Base name to C-like files of that name."""
    bound: dict[str, dict[tuple[str, str], None]] = field(default_factory=dict)
    """Function to (file that binds it, name in Python)."""
    named: dict[str, set[str]] = field(default_factory=dict)
    """Word to the Python files that hold it."""
    built: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """JSON build description to what :func:`read_build` gives of it."""

    def add_native(self, path: str, native: Native) -> None:
        """A C-like file appeared."""
        self.files.setdefault(base_name(path), set()).add(path)
        for name in native.includes:
            self.includers.setdefault(base_name(name), set()).add(path)
        for function, name in native.bound:
            self.bound.setdefault(function, {})[(path, name)] = None

    def remove_native(self, path: str, native: Native) -> None:
        """A C-like file is gone."""
        _discard(self.files, base_name(path), path)
        for name in native.includes:
            _discard(self.includers, base_name(name), path)
        for function, name in native.bound:
            if function in self.bound:
                self.bound[function].pop((path, name), None)
                if not self.bound[function]:
                    del self.bound[function]

    def add_words(self, path: str, words: Collection[str]) -> None:
        """A Python file appeared."""
        for word in words:
            self.named.setdefault(word, set()).add(path)

    def remove_words(self, path: str, words: Collection[str]) -> None:
        """A Python file is gone."""
        for word in words:
            _discard(self.named, word, path)

    def keys(self, listed: str) -> list[str]:
        """The keys of build descriptions under which a file or a folder (with a slash) is listed."""
        return [key for one in self.built.values() for key in one.get(listed, ())]

    def python_names(self, functions: Collection[str]) -> dict[str, str]:
        """The names under which Python may know ``functions``, each to its function: bound ones, and their own."""
        found = {name: name for name in functions if telling(name)}
        for function in functions:
            for _, name in self.bound.get(function, ()):
                if telling(name):
                    found[name] = function
        return found


def _discard(index: dict[str, set[str]], key: str, path: str) -> None:
    if key in index:
        index[key].discard(path)
        if not index[key]:
            del index[key]


def base_name(path: str) -> str:
    """The last part of a path with slashes."""
    return path.rpartition("/")[2]
