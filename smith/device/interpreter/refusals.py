"""What the interpreter cannot do, refused by name.

Every refusal's message starts with :data:`PREFIX`, also after Triton or pytest wrapped the exception into another
one, so that a reporter can tell "cannot be run here" (a task is *unresolvable*) from a failure.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

PREFIX = "smith: not interpretable:"


class NotInterpretable(RuntimeError):
    """The Triton interpreter has no right answer for what was asked; ``reason`` names it."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{PREFIX} {reason}")
        self.reason = reason


class NotInterpretableImport(NotInterpretable, ModuleNotFoundError):
    """A kernel language without an interpreter was imported; optional imports still see an ImportError."""

    def __init__(self, reason: str, module: str) -> None:
        super().__init__(reason)
        self.name = module


LANGUAGES = {
    "cuda": "cuTile or CUDA Python (module 'cuda')",
    "cutlass": "CuTe DSL (module 'cutlass')",
    "tilelang": "TileLang (module 'tilelang')",
    "torch_npu": "Ascend NPU code (module 'torch_npu')",
    "flydsl": "FlyDSL (module 'flydsl')",
}
"""Kernel languages that compile for a GPU or not at all, by top-level module; refused only where absent."""


class _KernelLanguages:
    """A last-resort module finder: where a kernel language is absent, its import is refused by name."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        reason = LANGUAGES.get(name)
        if reason is None or _asked_whether_it_exists():
            return None
        raise NotInterpretableImport(reason, name)


def _asked_whether_it_exists() -> bool:
    """True inside ``importlib.util.find_spec``, whose callers expect None for an absent module."""
    frame = sys._getframe(2)
    for _ in range(3):
        if frame.f_code.co_name == "find_spec" and frame.f_globals.get("__name__") == "importlib.util":
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def cause(error: BaseException) -> NotInterpretable | None:
    """The refusal behind ``error``, or None if it is an ordinary error."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        if isinstance(current, NotInterpretable):
            return current
        seen.add(id(current))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return None


def refuse(reason: str) -> Any:
    """A function that refuses with ``reason``, whatever it is called with."""

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotInterpretable(reason)

    return refused


def _unwrapped(original: Any) -> Any:
    """``original`` with a refusal coming out as itself, not inside Triton's InterpreterError."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except Exception as error:
            refusal = cause(error)
            if refusal is None or refusal is error:
                raise
            raise refusal from None

    return call


def _missing_operation(self: Any, name: str) -> Any:
    """For an operation that this version's interpreter does not have."""
    if name.startswith("create_"):
        return refuse(f"the operation {name.removeprefix('create_')!r} with this version of Triton")
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def install() -> None:
    """Patch Triton's builder and compile path, and watch imports."""
    from triton.runtime import interpreter as triton_interpreter
    from triton.runtime.jit import JITFunction

    module: Any = triton_interpreter
    builder = module.InterpreterBuilder
    builder.create_inline_asm = refuse("inline assembly (tl.inline_asm_elementwise)")
    builder.__getattr__ = _missing_operation
    compiled: Any = JITFunction
    compiled.run = refuse(
        "a kernel that is compiled although TRITON_INTERPRET=1 (Gluon, or a JITFunction made by hand)"
    )
    for cls in (module.GridExecutor, module.InterpretedFunction):
        cls.__call__ = _unwrapped(cls.__call__)
    if not any(finder is _KernelLanguages for finder in sys.meta_path):
        finders: Any = sys.meta_path
        finders.append(_KernelLanguages)
