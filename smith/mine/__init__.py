"""Mining: merged kernel pull requests of an upstream, from git alone.

``mine`` and ``explain`` are here; the modules behind them are loaded when they are first asked for, since the processes
that only classify need few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smith.mine.explanation import explain
    from smith.mine.funnel import Sampling, mine

__all__ = ["Sampling", "explain", "mine"]

_HOMES = {"Sampling": "funnel", "explain": "explanation", "mine": "funnel"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
