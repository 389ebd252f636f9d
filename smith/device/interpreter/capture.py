"""Distinct launches of a repository's kernels, as data from which another process can compile them.

Installed where a harness asks for it, and in no other process: a launch then costs what it costs without. A launch is
noted where the interpreter takes it over, so choices of autotuners and heuristics are made by then.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from triton.runtime import interpreter as triton_interpreter

from smith.device.compiler.arguments import Description, describe

Emit = Callable[[dict[str, Any]], None]

MOST = 2000
"""Distinct launches of one process that are told."""
MOST_BYTES = 4 << 20
"""Bytes of their descriptions, all together."""
MOST_OF_ONE = 1 << 16
MOST_ARGUMENTS = 512
MOST_OPTIONS = 64
"""What ``smith.records.compiled.Launch`` takes; a record that is too large would count as tampering."""
OPTIONS = frozenset(
    {
        "num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "debug",
        "enable_fp_fusion", "allow_flush_denorm", "schedule_hint", "instruction_sched_variant", "ptx_version",
        "num_consumer_groups", "num_buffers_warp_spec", "reg_dec_producer", "reg_inc_consumer", "sanitize_overflow",
        "launch_cooperative_grid", "launch_pdl",
    }
)  # fmt: skip
"""Names that Triton takes as launch options even where a kernel has a parameter of that name."""

_OF_THE_CALL = frozenset({"grid", "warmup"})
"""Before 3.5 or so they come along with the options."""

_I: Any = triton_interpreter


class _Kernel:
    """What is known of a kernel before it is launched."""

    def __init__(self, interpreted: Any, path: str) -> None:
        function = interpreted.fn
        self.signature = inspect.signature(function)
        self.names = list(self.signature.parameters)
        self.told = {
            "module": function.__module__,
            "symbol": function.__qualname__,
            "path": path,
            "line": function.__code__.co_firstlineno,
        }
        asked = getattr(interpreted, "kwargs", {})
        self.unspecialised = self._named(asked.get("do_not_specialize"))
        self.unaligned = self._named(asked.get("do_not_specialize_on_alignment"))

    def _named(self, entries: Any) -> frozenset[str]:
        return frozenset(self.names[e] if isinstance(e, int) else str(e) for e in entries or ())


class Capture:
    """Tells each distinct launch once. ``dropped`` counts those that were too many or could not be described."""

    def __init__(self, emit: Emit, root: str, excluded: Sequence[str]) -> None:
        self._emit = emit
        self._root = os.path.realpath(root) + os.sep
        self._excluded = tuple(place.rstrip("/") + "/" for place in excluded)
        self._kernels: dict[Any, _Kernel | None] = {}
        self._seen: set[str] = set()
        self._bytes = 0
        self.dropped = 0

    def see(self, interpreted: Any, constants: Sequence[str], args: Any, kwargs: Any, grid: Any) -> None:
        """Note one launch. Whatever is odd about it, the launch itself must not be touched."""
        try:
            kernel = self._kernel(interpreted)
            if kernel is not None:
                self._note(kernel, constants, args, kwargs, grid)
        except Exception:
            self.dropped += 1

    def _kernel(self, interpreted: Any) -> _Kernel | None:
        code = interpreted.fn.__code__
        if code not in self._kernels:
            path = os.path.realpath(code.co_filename)
            inside = os.path.relpath(path, self._root) if path.startswith(self._root) else None
            known = inside is not None and not f"{inside}/".startswith(self._excluded)
            self._kernels[code] = _Kernel(interpreted, inside) if known and inside is not None else None
        return self._kernels[code]

    def _note(self, kernel: _Kernel, constants: Sequence[str], args: Any, kwargs: Any, grid: Any) -> None:
        passed = {name: value for name, value in kwargs.items() if name in kernel.names}
        try:
            bound = kernel.signature.bind(*args, **passed)
        except TypeError:
            return  # the interpreter refuses it too, and so would a GPU
        bound.apply_defaults()
        arguments: list[Description] = []
        for name, value in bound.arguments.items():
            description = describe(
                value,
                constant=name in constants,
                specialise=name not in kernel.unspecialised,
                align=name not in kernel.unaligned,
            )
            if name in OPTIONS and name in kwargs:
                description = {**description, "traits": [*description.get("traits", ()), "option"]}
            arguments.append({"name": name, **description, **({"constant": True} if name in constants else {})})
        options = [
            {"name": name, **describe(value, constant=True), "constant": True}
            for name, value in sorted(kwargs.items())
            if name not in kernel.names and name not in _OF_THE_CALL and value is not None
        ]
        told = {**kernel.told, "arguments": arguments, "options": options}
        key = json.dumps(told)
        if key in self._seen:
            return
        odd = len(key) > MOST_OF_ONE or len(arguments) > MOST_ARGUMENTS or len(options) > MOST_OPTIONS
        if odd or len(self._seen) >= MOST or self._bytes + len(key) > MOST_BYTES:
            self.dropped += 1
            return
        self._seen.add(key)
        self._bytes += len(key)
        self._emit({**told, "grid": _grid(grid)})


def _grid(grid: Any) -> list[int]:
    """The resolved grid; empty where the launch ended before it was known."""
    return [int(size) for size in grid][:3] if isinstance(grid, (tuple, list)) else []


def install(emit: Emit, root: str, excluded: Sequence[str] = ()) -> Capture:
    """Tell ``emit`` of every distinct launch of a kernel below ``root`` and not below ``excluded`` (relative to it).

    The device must be installed. Raises :class:`RuntimeError` where it is not.
    """
    if not hasattr(_I.InterpretedFunction, "rewrite"):
        raise RuntimeError("this version of Triton has no interpreter that launches can be captured in")
    capture = Capture(emit, root, excluded)
    rewrite, launch = _I.InterpretedFunction.rewrite, _I.GridExecutor.__call__

    def tagged_rewrite(self: Any) -> Any:
        function = rewrite(self)
        function.smith_interpreted = self
        return function

    def seen_launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return launch(self, *args, **kwargs)
        finally:
            interpreted = getattr(self.fn, "smith_interpreted", None)
            if interpreted is not None and not kwargs.get("warmup"):
                capture.see(interpreted, self.constexprs, args, kwargs, self.grid)

    _I.InterpretedFunction.rewrite, _I.GridExecutor.__call__ = tagged_rewrite, seen_launch
    return capture
