"""What code under test must leave as it was: the test framework, comparisons, clocks, hooks and smith's own modules.

A snapshot is taken before any code of the repository is loaded and compared when everything has run. Objects are
compared by identity, and functions by their code as well, which can be exchanged in place. What is told are names only:
the parent outside decides, and lets pass what the reference does too.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

PACKAGES = ("_pytest", "pluggy", "smith.inside", "smith.device", "torch.testing", "numpy.testing")
"""All functions and classes of the modules of these packages, as far as they are loaded."""
MODULES = (
    "pytest", "unittest.case", "builtins", "time", "gc", "hmac", "json", "json.encoder", "inspect", "traceback", "math",
    "atexit", "random",
)  # fmt: skip
"""All functions and classes of these."""
SINGLE = {
    "os": ("write", "_exit", "fork", "getpid", "read", "times"),
    "sys": ("settrace", "setprofile", "exc_info", "_getframe", "exit"),
    "signal": ("signal", "setitimer"),
    "torch": ("allclose", "equal", "isclose", "eq", "ne", "all", "any", "isnan"),
    "torch.Tensor": (
        "allclose", "equal", "isclose", "eq", "ne", "all", "any", "item", "tolist", "__eq__", "__ne__", "__bool__",
        "__lt__", "__le__", "__gt__", "__ge__", "__sub__", "abs", "max",
    ),
    "numpy": ("allclose", "array_equal", "isclose", "all", "any"),
}  # fmt: skip
KEPT = ("torch", "numpy", "triton", "os", "sys", "signal", "subprocess", "threading")
"""Modules that must stay the ones under their names."""
VARIABLES = (
    "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONSTARTUP", "PYTHONINSPECT",
    "TRITON_INTERPRET", "SMITH_DEVICE",
)  # fmt: skip
ITS_OWN = frozenset({"_pytest.config.Config._getini_unknown_type"})
"""What pytest itself replaces while it runs."""
MOST = 50
_MISSING = object()


class Guard:
    """The snapshot. ``root`` is the folder of the code under test, ``own`` further modules that are watched."""

    def __init__(self, root: str, own: tuple[str, ...] = ()) -> None:
        self._root = os.path.realpath(root) + os.sep
        self._entries: list[tuple[str, Any, str, Any, Any]] = list(_entries(own))
        self._modules = {name: module for name, module in sys.modules.items() if _watched(name) or name in KEPT}
        self._environ = {name: os.environ.get(name) for name in VARIABLES}
        self._finders = {id(finder) for finder in sys.meta_path}
        self._traces = (sys.gettrace, sys.getprofile)

    def altered(self) -> list[str]:
        """The names of what is not as it was, at most :data:`MOST`."""
        found = [name for name, owner, key, value, code in self._entries if not _same(owner, key, value, code)]
        found = [name for name in found if name not in ITS_OWN]
        found += [f"sys.modules[{n}]" for n, m in self._modules.items() if sys.modules.get(n) is not m]
        found += [f"environ[{n}]" for n, value in self._environ.items() if os.environ.get(n) != value]
        found += [f"sys.{hook.__name__}" for hook in self._traces if hook() is not None]
        found += [f"threading.{n}" for n in ("_trace_hook", "_profile_hook") if getattr(threading, n, None) is not None]
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is not None:
            found += [f"sys.monitoring[{n}]" for n in range(6) if monitoring.get_tool(n) is not None]
        found += [f"sys.meta_path[{type(f).__name__}]" for f in sys.meta_path if self._is_foreign(f)]
        return sorted(set(found))[:MOST]

    def plugins(self, config: Any) -> list[str]:
        """Plug-ins of pytest that come from the code under test and are no ``conftest.py``."""
        found = []
        for plugin in config.pluginmanager.get_plugins():
            file = _file_of(plugin)
            if file.startswith(self._root) and os.path.basename(file) != "conftest.py":
                found.append(f"plugin[{os.path.relpath(file, self._root)}]")
        return sorted(set(found))

    def _is_foreign(self, finder: Any) -> bool:
        return id(finder) not in self._finders and _file_of(finder).startswith(self._root)


def _file_of(thing: Any) -> str:
    """The file of a module, or of the module that the class of an object comes from."""
    module = thing if isinstance(thing, types.ModuleType) else sys.modules.get(type(thing).__module__)
    if isinstance(thing, type):
        module = sys.modules.get(thing.__module__)
    return os.path.realpath(str(getattr(module, "__file__", None) or ""))


def _watched(name: str) -> bool:
    return name in MODULES or any(name == p or name.startswith(f"{p}.") for p in PACKAGES)


def _entries(own: tuple[str, ...] = ()) -> Iterator[tuple[str, Any, str, Any, Any]]:
    """Name, owner, key, value and code of everything that is watched."""
    for name, module in sorted(sys.modules.items()):
        if module is None or not (_watched(name) or name in own):
            continue
        for key, value in list(vars(module).items()):
            if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
                yield f"{name}.{key}", module, key, value, getattr(value, "__code__", None)
            elif isinstance(value, type):
                yield f"{name}.{key}", module, key, value, None
                if value.__module__ == name:
                    yield from _members(f"{name}.{key}", value)
    for name, keys in SINGLE.items():
        owner: Any = sys.modules.get(name)
        if owner is None and name == "torch.Tensor" and "torch" in sys.modules:
            owner = getattr(sys.modules["torch"], "Tensor", None)
        for key in keys if owner is not None else ():
            value = _own(owner, key)
            if value is not _MISSING:
                yield f"{name}.{key}", owner, key, value, getattr(value, "__code__", None)


def _members(name: str, kind: type) -> Iterator[tuple[str, Any, str, Any, Any]]:
    for key, value in list(vars(kind).items()):
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType):
            yield f"{name}.{key}", kind, key, value, function.__code__


def _own(owner: Any, key: str) -> Any:
    """What ``owner`` itself holds under ``key``; for a class also what it inherits."""
    if isinstance(owner, type):
        for each in owner.__mro__:
            if key in vars(each):
                return vars(each)[key]
        return _MISSING
    return vars(owner).get(key, _MISSING)


def _same(owner: Any, key: str, value: Any, code: Any) -> bool:
    now = _own(owner, key)
    if now is not value:
        return False
    return code is None or getattr(getattr(now, "__func__", now), "__code__", None) is code
