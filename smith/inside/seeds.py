"""Seeds of the generators that a test does not seed itself, so that repeats differ on purpose and can be had again.

They are set once a process, before anything of the repository is imported: a test file that seeds when it is imported,
a fixture or a test keeps the last word. A library that is loaded later is seeded as it is loaded. (Python's hashing
takes its seed from the variable ``PYTHONHASHSEED``, which the host sets.)
"""

from __future__ import annotations

import functools
import importlib.util
import random
import sys
from collections.abc import Callable
from typing import Any

LIBRARIES = ("numpy", "torch")


def seed_all(seed: int, shift: int = 0) -> None:
    """Seed Python's generator, and numpy's and torch's default ones, now or when they are imported.

    With ``shift`` what a test seeds for itself is moved by as much, where it does so through ``random.seed``,
    ``numpy.random.seed``, ``numpy.random.default_rng`` or ``torch.manual_seed``.
    """
    random.seed(seed)
    if shift:
        random.seed = _shifted(random.seed, shift)
    for name in LIBRARIES:
        if name in sys.modules:
            _seed(name, seed, shift, sys.modules[name])
        else:
            sys.meta_path.insert(0, _WhenLoaded(name, functools.partial(_seed, name, seed, shift)))


def _seed(name: str, seed: int, shift: int, module: Any) -> None:
    if name == "numpy":
        module.random.seed(seed % (1 << 32))
        if shift:
            module.random.seed = _shifted(module.random.seed, shift)
            module.random.default_rng = _shifted(module.random.default_rng, shift)
    else:
        module.manual_seed(seed)
        if shift:
            module.manual_seed = module.random.manual_seed = _shifted(module.manual_seed, shift)


def _shifted(function: Callable[..., Any], shift: int) -> Callable[..., Any]:
    """``function`` with its first argument, or ``seed``, moved by ``shift`` where that is a whole number."""

    @functools.wraps(function)
    def seeded(*args: Any, **named: Any) -> Any:
        if args and type(args[0]) is int:
            args = (args[0] + shift, *args[1:])
        if type(named.get("seed")) is int:
            named["seed"] += shift
        return function(*args, **named)

    return seeded


class _WhenLoaded:
    """A finder that finds nothing of its own: it does something once, right after a module was loaded."""

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self._name, self._then = name, then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            load = loader.exec_module

            def exec_module(module: Any) -> None:
                load(module)
                self._then(module)

            loader.exec_module = exec_module
        return spec
