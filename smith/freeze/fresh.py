"""What the changed files of a reference have and those of the start have not, by name.

For uses in tests whose object cannot be told: a name that only the reference knows means what the reference defines.
Each list is made when it is first asked for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from smith.freeze.modules import Found, World, last_name, members
from smith.freeze.signatures import parameter_names

SHORT_STRING = re.compile(r"[\w.:/+-]{2,60}")
"""Strings that can be a mode, a key or the name of a variable."""
_NAME = re.compile(r"[^\W\d]\w*")
_WORD = re.compile(r"\w{3,}")
_NATIVE = re.compile(r"(?:[A-Za-z_][\w:<>*&]*\s+)+[*&]*(\w{4,})\s*\(")
"""The head of a function in C or C++, at the start of a line."""
_LONGEST = 200

Raised = tuple[str, str, str]
"""Path, class and constant text of a ``raise``, ``assert`` or ``warn``."""


class Fresh:
    """What ``reference`` has in the files ``changed`` that ``start`` has not."""

    def __init__(self, start: World, reference: World, changed: Iterable[str]) -> None:
        self._start, self._reference = start, reference
        self._changed = [path for path in changed if path in reference.files]
        self._gone = [path for path in changed if path in start.files]

    @cached_property
    def _old_text(self) -> str:
        return "\n".join(self._start.text(path) for path in self._gone)

    @cached_property
    def _known(self) -> set[str]:
        return set(_NAME.findall(self._old_text))

    @cached_property
    def _names(self) -> set[str]:
        return {name for path in self._changed for name in _NAME.findall(self._reference.text(path))} - self._known

    def knows(self, name: str) -> bool:
        """Whether the reference's files have an identifier that those of the start have not."""
        return name in self._names

    @property
    def _python(self) -> Iterator[str]:
        return (path for path in self._changed if path.endswith(".py"))

    @cached_property
    def members(self) -> dict[str, list[tuple[Found, bool]]]:
        """Name of a method or attribute to the classes that have it, each with whether the class is new."""
        found: dict[str, list[tuple[Found, bool]]] = {}
        for path in self._python:
            for name, node in self._reference.scope(path).classes.items():
                earlier = self._start.lookup(path, name) if path in self._start.files else None
                had = members(earlier.node) if earlier and isinstance(earlier.node, ast.ClassDef) else set()
                for member in sorted(members(node) - had - self._known):
                    if not member.startswith("__"):
                        found.setdefault(member, []).append((Found(path, name, node), earlier is None))
        return found

    @cached_property
    def parameters(self) -> dict[str, list[Found]]:
        """Name of a parameter to the functions that take it."""
        found: dict[str, list[Found]] = {}
        for path in self._python:
            for name, function in self._reference.scope(path).functions.items():
                for parameter in sorted(set(parameter_names(function)) - self._known):
                    found.setdefault(parameter, []).append(Found(path, name, function))
        return found

    @cached_property
    def strings(self) -> dict[str, str]:
        """Short string constants to the file that has them."""
        found: dict[str, str] = {}
        for path in self._python:
            for node in ast.walk(self._reference.tree(path) or ast.Module([], [])):
                text = node.value if isinstance(node, ast.Constant) else None
                if not isinstance(text, str) or text in found or not SHORT_STRING.fullmatch(text):
                    continue
                if text not in self._old_text:
                    found[text] = path
        return found

    @cached_property
    def native(self) -> dict[str, tuple[str, str]]:
        """Names of functions in C and C++ to file and first line."""
        found: dict[str, tuple[str, str]] = {}
        for path in self._changed:
            for line in () if path.endswith(".py") else self._reference.text(path).splitlines():
                match = _NATIVE.match(line)
                if match and match[1] not in self._known:
                    found.setdefault(match[1], (path, " ".join(line.split()).rstrip("{ ,")[:_LONGEST]))
        return found

    @cached_property
    def _raised(self) -> list[Raised]:
        old = {raised[1:] for path in self._gone if path.endswith(".py") for raised in _raises(self._start, path)}
        return [raised for path in self._python for raised in _raises(self._reference, path) if raised[1:] not in old]

    def raised(self, names: Iterable[str], pattern: str | None) -> str | None:
        """The file in which the reference newly raises one of these, with a message that ``pattern`` can match.

        The pattern is not run, since it is the upstream's: all its words must be in the message.
        """
        wanted = set(names)
        words = set(_WORD.findall(re.sub(r"\\.", " ", pattern or "")))
        for path, name, message in self._raised:
            if name in wanted and (not pattern or words <= set(_WORD.findall(message))):
                return path
        return None


def _raises(world: World, path: str) -> Iterator[Raised]:
    for node in ast.walk(world.tree(path) or ast.Module([], [])):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield path, last_name(node.exc), _text(node.exc)
        elif isinstance(node, ast.Assert):
            yield path, "AssertionError", _text(node.msg or node.test)
        elif isinstance(node, ast.Call) and last_name(node) in ("warn", "warn_once"):
            yield path, last_name(node.args[1]) if len(node.args) > 1 else "UserWarning", _text(node)


def _text(node: ast.AST) -> str:
    return "".join(n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))
