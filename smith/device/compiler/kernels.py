"""Finding the jit function of a captured launch in a process that compiles."""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Any

from .arguments import unwrap


class NotFound(LookupError):
    """The module was imported and holds no such jit function that could be told apart."""


class ImportFailed(ImportError):
    """The module of a kernel cannot be imported without the interpreter."""


class Kernels:
    """Jit functions by module, name and line. Modules are imported when they are first asked for, once."""

    def __init__(self) -> None:
        self._failed: dict[str, ImportFailed] = {}
        self._index: dict[tuple[str, str, int], list[Any]] = {}
        self._functions: list[Any] = []

    def load(self, module: str, path: str = "") -> None:
        """Import a module. ``path``, relative to the root, helps where it is known by its file only.

        Raises :class:`ImportFailed`, for the same module always the same.
        """
        if module in self._failed:
            raise self._failed[module]
        if module in sys.modules:
            return
        try:
            importlib.import_module(module)
        except BaseException as error:  # a module may raise anything, SystemExit too
            if isinstance(error, KeyboardInterrupt):
                raise
            words = f"{type(error).__name__}: {error}".strip().splitlines()
            self._failed[module] = ImportFailed(f"{path or module}: {words[0][:300] if words else 'no message'}")
            raise self._failed[module] from error
        self._index.clear()

    def find(self, module: str, symbol: str, line: int, path: str = "") -> Any:
        """The jit function that is defined at this line. Raises :class:`NotFound` and :class:`ImportFailed`."""
        self.load(module, path)
        if not self._index:
            self._build()
        found = self._index.get((module, symbol, line), [])
        if len(found) > 1:
            named = self._attribute(module, symbol)
            found = [one for one in found if one is named] or found
        if not found:
            local = " (it is made inside a function)" if "<locals>" in symbol else ""
            raise NotFound(f"{module} holds no jit function {symbol} at line {line}{local}")
        if len(found) > 1:
            raise NotFound(f"{module} holds {len(found)} jit functions {symbol} of line {line}")
        return found[0]

    def named(self, text: str) -> Any:
        """The jit function that a description ``module:qualified name:line`` means."""
        module, symbol, line = text.rsplit(":", 2)
        return self.find(module, symbol, int(line))

    def all(self) -> list[Any]:
        """Every jit function of this process, as of the last import."""
        if not self._index:
            self._build()
        return self._functions

    def _build(self) -> None:
        from triton.runtime.jit import JITFunction

        self._functions = [one for one in gc.get_objects() if issubclass(type(one), JITFunction)]
        for one in self._functions:
            key = (one.fn.__module__, one.fn.__qualname__, one.fn.__code__.co_firstlineno)
            self._index.setdefault(key, []).append(one)

    @staticmethod
    def _attribute(module: str, symbol: str) -> Any:
        value: Any = sys.modules.get(module)
        for part in symbol.split("."):
            value = getattr(value, part, None)
        return unwrap(value) if value is not None else None
