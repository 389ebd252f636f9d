"""Counts of kernel launches on a real GPU, by kernel: where Triton launches, whatever its version.

Every launch of a ``@triton.jit`` function goes through ``JITFunction.run``, also from an autotuner or heuristics.
(Triton's own launch hook gives a bare name and exists in newer versions only.) Nested jit functions are compiled into
the kernel and are never seen running: those that a launched kernel refers to count as called, which is how Triton too
decides what a kernel depends on. Kernels that are compiled once and launched by hand, and kernels in C++, are not seen.
"""

from __future__ import annotations

import os
import types
from collections.abc import Iterator
from typing import Any

import triton
from triton.runtime.jit import JITFunction

_TRITON = os.path.dirname(os.path.realpath(triton.__file__)) + os.sep

_root = os.path.realpath(os.getcwd())
_counts: dict[str, dict[str, int]] = {}
_reached: dict[Any, tuple[str, tuple[str, ...]]] = {}
_installed = False


def key_of(function: Any) -> str:
    """``file::qualname`` of a kernel's function, the file relative to the start directory where it lies below it."""
    path = os.path.realpath(function.__code__.co_filename)
    shown = os.path.relpath(path, _root) if path.startswith(_root + os.sep) else path
    return f"{shown}::{function.__qualname__}"


def snapshot() -> dict[str, dict[str, int]]:
    """The counts since the last :func:`reset`, by kernel."""
    return {key: dict(counts) for key, counts in _counts.items()}


def reset() -> None:
    """Forget all counts."""
    _counts.clear()


def _add(key: str, field: str) -> None:
    _counts.setdefault(key, {"launches": 0, "calls": 0})[field] += 1


def referred(kernel: Any) -> tuple[Any, ...]:
    """The jit functions that ``kernel`` refers to, directly or through others; none of Triton's own."""
    found: dict[int, Any] = {}
    waiting = [kernel]
    while waiting:
        for other in _named(waiting.pop().fn):
            if id(other) not in found and other is not kernel:
                found[id(other)] = other
                waiting.append(other)
    return tuple(found.values())


def _named(function: Any) -> Iterator[Any]:
    names = function.__code__.co_names
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    values = [function.__globals__.get(name) for name in names]
    for cell in cells.values():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    for value in values:
        if isinstance(value, types.ModuleType):
            # `helpers.add` is a module and an attribute; which belongs to which the names do not say.
            values += [one for name in names if isinstance(one := value.__dict__.get(name), JITFunction)]
        elif isinstance(value, JITFunction) and not _is_tritons(value):
            yield value


def _is_tritons(kernel: Any) -> bool:
    path: str = os.path.realpath(kernel.fn.__code__.co_filename)
    return path.startswith(_TRITON)


def _note(kernel: Any) -> None:
    if kernel not in _reached:
        _reached[kernel] = (key_of(kernel.fn), tuple(key_of(each.fn) for each in referred(kernel)))
    key, nested = _reached[kernel]
    _add(key, "launches")
    for each in nested:
        _add(each, "calls")


def install() -> None:
    """Count every launch that Triton accepts; once a process."""
    global _installed
    if _installed:
        return
    original = JITFunction.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        done = original(self, *args, **kwargs)
        if not kwargs.get("warmup") and not _is_tritons(self):
            _note(self)
        return done

    JITFunction.run = run
    _installed = True
