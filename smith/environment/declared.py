"""What a project declares that it needs: pyproject.toml, setup.cfg, setup.py, requirement, lock and conda files.

Everything is read, nothing is run: of a ``setup.py`` its syntax tree is taken, so what it computes is found only where
the strings stand in it. Each requirement keeps where it was found, which is shown to whoever edits the recipe.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from smith.environment.requirements import canonical
from smith.environment.source import SourceFiles
from smith.syntax import parse

_REQUIREMENT_FILE = re.compile(
    r"(?:[\w.-]*requirements?[\w.-]*\.(?:txt|in)|(?:[\w.-]+/){0,2}requirements/[\w.-]+\.(?:txt|in)"
    r"|(?:\.github|\.ci|ci|docker|dev|tests?|[\w]*tests?)/(?:[\w.-]+/)?[\w.-]*requirements?[\w.-]*\.(?:txt|in))"
)
_CONDA_FILE = re.compile(r"(?:[\w.-]+/)?environment[\w.-]*\.ya?ml")
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_MOST = 400
_MOST_LINES = 2000
_DEPTH = 8
# Readers of TOML and INI take time that grows with the square of a line.
_LONGEST_LINE = 4000
_LARGEST_PROJECT_FILE = 100_000
FAULTS = (ValueError, TypeError, AttributeError, LookupError, RecursionError, OverflowError)
"""What libraries raise for files that are nobody's project: nothing is told by those."""


@dataclass(frozen=True)
class Declared:
    """One requirement, and where it stands."""

    requirement: Requirement
    origin: str
    runtime: bool
    """Whether the package itself needs it, by its own metadata."""

    @property
    def name(self) -> str:
        return canonical(self.requirement.name)


@dataclass(frozen=True)
class Declarations:
    """``locked`` are exact versions by canonical name; ``python`` is a version specifier, or empty."""

    requirements: tuple[Declared, ...]
    locked: Mapping[str, tuple[str, str]]
    """Version and file."""
    python: str = ""
    own: frozenset[str] = frozenset()
    """Canonical names of the project's own distributions."""
    unread: tuple[str, ...] = ()
    """Files that are broken."""


def requirement(text: str) -> Requirement | None:
    """The requirement that ``text`` states; None for options, paths and addresses."""
    try:
        found = Requirement(text.strip())
    except InvalidRequirement:
        return None
    # ``===`` takes anything, which pip and smith's own recipes do not.
    return None if found.url or "===" in text or not text.isprintable() else found


def read_declarations(source: SourceFiles, also: Iterable[str] = ()) -> Declarations:
    """Everything that the project's own files declare, in the order in which they count.

    ``also`` names further requirement files.
    """
    found: list[Declared] = []
    own: set[str] = set()
    python = ""
    unread: list[str] = []
    for path, reader in (("pyproject.toml", _pyproject), ("setup.cfg", _setup_cfg), ("setup.py", _setup_py)):
        try:
            some, names, versions = reader(project_text(source, path))
        except FAULTS:
            unread.append(path)
            continue
        found += some
        own |= names
        python = python or versions
    listed = [path for path in source.paths if _REQUIREMENT_FILE.fullmatch(path)]
    listed += [path for path in also if path in source.known and path not in listed]
    for path in sorted(listed, key=lambda path: (path.count("/"), path)):
        found += [Declared(one, path, path == "requirements.txt") for one in _requirement_file(source, path, {path})]
    locked: dict[str, tuple[str, str]] = {}
    others = [(path, _conda) for path in source.paths if _CONDA_FILE.fullmatch(path)]
    for path, reader_of in others:
        try:
            found += [Declared(one, path, False) for one in reader_of(source.text(path))]
        except FAULTS:
            unread.append(path)
    for path in (*_LOCKS, "Pipfile.lock"):
        try:
            versions_of = list(_lock(path, source.text(path)))
        except FAULTS:
            unread.append(path)
            continue
        for name, version in versions_of:
            locked.setdefault(canonical(name), (version, path))
    return Declarations(tuple(found[:_MOST]), locked, python, frozenset(own), tuple(unread))


def project_text(source: SourceFiles, path: str) -> str:
    """The text of a project file. Raises :class:`ValueError` for one that is larger than any project's."""
    text = source.text(path)
    if len(text) > _LARGEST_PROJECT_FILE or any(len(line) > _LONGEST_LINE for line in text.splitlines()):
        raise ValueError(f"{path} is too large")
    return text


_Read = tuple[list[Declared], set[str], str]


def _pyproject(text: str) -> _Read:
    path = "pyproject.toml"
    data = tomllib.loads(text)
    project, poetry = _table(data, "project"), _table(data, "tool", "poetry")
    found = list(_named(_strings(project.get("dependencies")), f"{path}: project.dependencies", runtime=True))
    for group, some in _table(project, "optional-dependencies").items():
        found += _named(_strings(some), f"{path}: project.optional-dependencies.{group}")
    for group, some in _table(data, "dependency-groups").items():
        found += _named(_strings(some), f"{path}: dependency-groups.{group}")
    found += _named(_poetry(_table(poetry, "dependencies")), f"{path}: tool.poetry.dependencies", runtime=True)
    found += _named(_poetry(_table(poetry, "dev-dependencies")), f"{path}: tool.poetry.dev-dependencies")
    for group, table in _table(poetry, "group").items():
        some = _table(table, "dependencies") if isinstance(table, dict) else {}
        found += _named(_poetry(some), f"{path}: tool.poetry.group.{group}")
    name = project.get("name") or poetry.get("name")
    python = project.get("requires-python")
    return found, {canonical(name)} if isinstance(name, str) else set(), python if isinstance(python, str) else ""


def _poetry(table: Mapping[str, Any]) -> Iterator[str]:
    """Poetry's carets and tildes as specifiers that everybody reads."""
    for name, value in table.items():
        version = value.get("version", "*") if isinstance(value, dict) else value
        if name.lower() == "python" or not isinstance(version, str):
            continue
        numbers = re.fullmatch(r"([\^~]?)=?\s*(\d{1,9}(?:\.\d{1,9}){0,5})", version.strip())
        if numbers is None:
            # What begins with a digit and is no plain version would become part of the name.
            yield f"{name}{version}" if version.strip()[:1] in ("<", ">", "!", "=", "~") else name
        elif not numbers[1]:
            yield f"{name}=={numbers[2]}"
        else:
            parts = numbers[2].split(".")
            upto = parts[: 1 if numbers[1] == "^" and parts[0] != "0" else 2]
            upto[-1] = str(int(upto[-1]) + 1)
            yield f"{name}>={numbers[2]},<{'.'.join(upto)}"


def _setup_cfg(text: str) -> _Read:
    path = "setup.cfg"
    reader = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        reader.read_string(text)
    except configparser.Error as error:
        raise ValueError(path) from error
    lines = reader.get("options", "install_requires", fallback="").splitlines()
    found = list(_named(lines, f"{path}: options.install_requires", runtime=True))
    if reader.has_section("options.extras_require"):
        for extra, text in reader.items("options.extras_require"):
            found += _named(text.splitlines(), f"{path}: options.extras_require.{extra}")
    name = reader.get("metadata", "name", fallback="")
    return found, {canonical(name)} if name else set(), reader.get("options", "python_requires", fallback="")


def _setup_py(text: str) -> _Read:
    path = "setup.py"
    tree = parse(text) if text else None
    if tree is None:
        return [], set(), ""
    reader = _SetupScript(tree)
    found: list[Declared] = []
    own: set[str] = set()
    python = ""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == "setup"):
        for keyword in call.keywords:
            if keyword.arg == "install_requires":
                found += _named(reader.strings(keyword.value), f"{path}: install_requires", runtime=True)
            elif keyword.arg == "extras_require":
                for extra, values in reader.extras(keyword.value):
                    found += _named(values, f"{path}: extras_require.{extra}")
            elif keyword.arg == "python_requires":
                python = next(iter(reader.strings(keyword.value)), "")
            elif keyword.arg == "name":
                own |= {canonical(name) for name in reader.strings(keyword.value)}
    return found, own, python


class _SetupScript:
    """The strings that an expression of a script may stand for, followed through names and local functions."""

    def __init__(self, tree: ast.Module) -> None:
        self._functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        self._values: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            for target, value in _assigned(node):
                self._values.setdefault(target, []).append(value)

    def strings(self, node: ast.expr, depth: int = 0, followed: set[str] | None = None) -> list[str]:
        """Strings in lists below ``node``, those of the names and functions it uses with them."""
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) else []
        found: list[str] = []
        # Each name is followed once: twenty that stand for twenty others each would never end.
        followed = set() if followed is None else followed
        if depth > _DEPTH:
            return found
        name = node.id if isinstance(node, ast.Name) else _called(node) if isinstance(node, ast.Call) else ""
        if name in followed:
            return found
        if name in self._values or name in self._functions:
            followed.add(name)
        if isinstance(node, ast.Dict):
            for value in node.values:
                found += self.strings(value, depth + 1, followed)
        elif isinstance(node, ast.Call):
            for function in self._called(node):
                for part in ast.walk(function):
                    if isinstance(part, ast.List | ast.Tuple) or (isinstance(part, ast.Return) and part.value):
                        found += self.strings(part.value if isinstance(part, ast.Return) else part, depth + 1, followed)  # type: ignore[arg-type]
        elif isinstance(node, ast.Name):
            for value in self._values.get(node.id, ()):
                found += self.strings(value, depth + 1, followed)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    found += self.strings(child, depth + 1, followed)
        return list(dict.fromkeys(found))

    def extras(self, node: ast.expr, depth: int = 0) -> Iterator[tuple[str, list[str]]]:
        """Names of extras with what each asks for."""
        if depth > _DEPTH:
            return
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, self.strings(value)
        elif isinstance(node, ast.Name):
            for value in self._values.get(node.id, ()):
                yield from self.extras(value, depth + 1)
        elif isinstance(node, ast.Call):
            for function in self._called(node):
                for part in ast.walk(function):
                    if isinstance(part, ast.Return) and part.value is not None:
                        yield from self.extras(part.value, depth + 1)

    def _called(self, node: ast.Call) -> list[ast.FunctionDef]:
        function = self._functions.get(_called(node))
        return [function] if function is not None else []


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((t.id, node.value) for t in node.targets if isinstance(t, ast.Name))
    elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, node.value
    elif isinstance(node, ast.Call) and _called(node) in ("append", "extend") and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        yield from ((owner.id, argument) for argument in node.args if isinstance(owner, ast.Name))


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _requirement_file(source: SourceFiles, path: str, seen: set[str], depth: int = 0) -> list[Requirement]:
    """The requirements of a file and of those that it names; ``seen`` grows, so that each is read once."""
    found: list[Requirement] = []
    for line in source.text(path).replace("\\\n", " ").splitlines()[:_MOST_LINES]:
        words = _COMMENT.sub("", line[:_LONGEST_LINE]).split()
        if not words:
            continue
        other = _other_file(words)
        if other:
            at = source.beside(path, other)
            if at not in seen and depth < _DEPTH:
                seen.add(at)
                found += _requirement_file(source, at, seen, depth + 1)
        elif one := requirement(" ".join(word for word in words if not word.startswith("--"))):
            found.append(one)
    return found


def _other_file(words: Sequence[str]) -> str:
    """The requirement file that a line asks for."""
    if words[0] in ("-r", "--requirement"):
        return words[1] if len(words) > 1 else ""
    if words[0].startswith("--requirement="):
        return words[0].partition("=")[2]
    return words[0][2:] if words[0].startswith("-r") else ""


def _conda(text: str) -> Iterator[Requirement]:
    listed = _table(load_yaml(text)).get("dependencies")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            yield from filter(None, map(requirement, _strings(entry.get("pip"))))
        elif isinstance(entry, str):
            # conda writes one sign where pip writes two
            name, _, version = entry.rpartition("::")[2].partition("=")
            one = requirement(name + (f"=={version.strip('=').partition('=')[0]}" if version else ""))
            if one is not None and one.name != "python":
                yield one


def _lock(path: str, text: str) -> Iterator[tuple[str, str]]:
    if not text:
        return
    if any(len(line) > _LONGEST_LINE for line in text.splitlines()):
        raise ValueError(f"{path} has a line that no tool writes")
    data = json.loads(text) if path.endswith("Pipfile.lock") else tomllib.loads(text)
    for section in ("default", "develop"):
        for name, entry in _table(data, section).items():
            version = entry.get("version") if isinstance(entry, dict) else None
            if isinstance(version, str):
                yield from _locked(name, version.removeprefix("=="))
    listed = data.get("package") or data.get("packages") if isinstance(data, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get("version"), str):
            yield from _locked(entry["name"], entry["version"])


def _locked(name: str, version: str) -> Iterator[tuple[str, str]]:
    """A version that an index can have: a local part names somebody's own build."""
    try:
        yield name, Version(version).public
    except InvalidVersion:
        return


def load_yaml(text: str) -> object:
    """A YAML document of strings, lists and mappings. Raises :class:`ValueError` where it is broken.

    Every scalar is a string, so that 3.10 is no number and no tag makes anything. Aliases are shared, never copied.
    """
    try:
        return yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("no YAML") from error


def _named(texts: Iterable[str], origin: str, *, runtime: bool = False) -> Iterator[Declared]:
    yield from (Declared(one, origin, runtime) for text in texts if (one := requirement(text)) is not None)


def _strings(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _table(data: object, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}
