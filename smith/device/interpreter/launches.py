"""Counts of what kernels did, by kernel: launches, calls of nested functions, programs, loads, stores, atomics.

Facts, and no measure of speed. Loads, stores and atomics are operations (each of a whole block), and belong to the
innermost jit function that ran them.
"""

from __future__ import annotations

import os
from typing import Any

from triton.runtime import interpreter as triton_interpreter

Counts = dict[str, int]

FIELDS = ("launches", "calls", "programs", "loads", "stores", "atomics")

_I: Any = triton_interpreter
_TRITON = os.path.dirname(os.path.dirname(os.path.realpath(triton_interpreter.__file__))) + os.sep

_root = os.path.realpath(os.getcwd())
_keys: dict[Any, str | None] = {}
_counts: dict[str, Counts] = {}
_stack: list[str] = []


def key_of(function: Any) -> str | None:
    """``file::qualname`` of a kernel, the file relative to the start directory where it lies below it.

    None for functions of Triton's own language library.
    """
    code = function.__code__
    if code not in _keys:
        path = os.path.realpath(code.co_filename)
        if path.startswith(_TRITON):
            _keys[code] = None
        else:
            shown = os.path.relpath(path, _root) if path.startswith(_root + os.sep) else path
            _keys[code] = f"{shown}::{function.__qualname__}"
    return _keys[code]


def snapshot() -> dict[str, dict[str, int]]:
    """The counts since the last :func:`reset`, by kernel."""
    return {key: dict(counts) for key, counts in _counts.items()}


def reset() -> None:
    """Forget all counts."""
    _counts.clear()


def innermost() -> str | None:
    """The jit function that is running now, as :func:`key_of` names it; None outside of launches."""
    return _stack[-1] if _stack else None


def add(key: str | None, field: str) -> None:
    """Count one event of a kernel; nothing for None."""
    if key is not None:
        counts = _counts.get(key)
        if counts is None:
            counts = _counts[key] = dict.fromkeys(FIELDS, 0)
        counts[field] += 1


def _add_to_innermost(field: str) -> None:
    if _stack:
        add(_stack[-1], field)


def _running(key: str | None, original: Any, *args: Any, **kwargs: Any) -> Any:
    if key is None:
        return original(*args, **kwargs)
    _stack.append(key)
    try:
        return original(*args, **kwargs)
    finally:
        _stack.pop()


def _count_events() -> None:
    builder: Any = _I.InterpreterBuilder
    for name, field in (
        ("set_grid_idx", "programs"),
        ("create_masked_load", "loads"),
        ("create_masked_store", "stores"),
        ("create_atomic_rmw", "atomics"),
        ("create_atomic_cas", "atomics"),
    ):
        original = getattr(builder, name)

        def counted(self: Any, *args: Any, original: Any = original, field: str = field, **kwargs: Any) -> Any:
            _add_to_innermost(field)
            return original(self, *args, **kwargs)

        setattr(builder, name, counted)


def _count_combines(cls: Any) -> None:
    """Combine functions of reductions and scans run as plain functions: count their use once for each reduction."""
    original = cls.apply_impl

    def apply_impl(self: Any, input: Any) -> Any:
        function = getattr(self.combine_fn, "fn", None)
        if hasattr(function, "__code__"):
            add(key_of(function), "calls")
        return original(self, input)

    cls.apply_impl = apply_impl


def install() -> None:
    """Patch the interpreter's grid call, its device function call and its builder."""
    interpreted, executor = _I.InterpretedFunction, _I.GridExecutor
    rewrite, call, launch = interpreted.rewrite, interpreted.__call__, executor.__call__

    def tagged_rewrite(self: Any) -> Any:
        function = rewrite(self)
        function.smith_key = key_of(self.fn)
        return function

    def counted_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        key = key_of(self.fn)
        if _stack:
            add(key, "calls")
        return _running(key, call, self, *args, **kwargs)

    def counted_launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        key = None if kwargs.get("warmup") else getattr(self.fn, "smith_key", None)
        add(key, "launches")
        return _running(key, launch, self, *args, **kwargs)

    interpreted.rewrite, interpreted.__call__, executor.__call__ = (
        tagged_rewrite,
        counted_call,
        counted_launch,
    )
    _count_events()
    for cls in (_I.ReduceOps, _I.ScanOps):
        _count_combines(cls)
