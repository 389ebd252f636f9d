"""Functions of the device libraries (libdevice, OCML) in the interpreter.

Triton dispatches such a function by argument types to a symbol (``__nv_tanhf``, ``__ocml_tanh_f64``). The interpreter
has no builder for it, and the generic module holds stubs that answer None. Here the generic module gets the functions
of the target's own library, and the builder computes a symbol by its name.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

from .device_functions import FUNCTIONS, Function
from .refusals import NotInterpretable
from .target import Target

_I: Any = triton_interpreter
_TL: Any = tl

_CONTEXT: dict[str, Any] = (
    {"_semantic": _I.interpreter_semantic}
    if hasattr(_I, "interpreter_semantic")
    else {"_builder": _I.interpreter_builder}  # Triton 3.3
)
_PREFIX = re.compile(r"^(?:__nv_|__ocml_|__ockl_|__triton_hip_|llvm\.)")
_TYPE = re.compile(r"[._](?:f16|f32|f64|i32|i64|u32|u64)$")
_SUFFIXES = ("", "f", "d", "ll")


def function_of(symbol: str) -> Function:
    """The function that a library symbol computes.

    :raises NotInterpretable: it is none of :data:`.device_functions.FUNCTIONS`.
    """
    name = _TYPE.sub("", _PREFIX.sub("", symbol))
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and name.removesuffix(suffix) in FUNCTIONS:
            return FUNCTIONS[name.removesuffix(suffix)]
    raise NotInterpretable(f"the external function {symbol!r}")


def _extern_elementwise(self: Any, lib: str, path: str, symbol: str, args: Any, ret_type: Any, is_pure: bool) -> Any:
    function = function_of(symbol)
    scalar = ret_type.scalar
    with np.errstate(all="ignore"):
        result = np.asarray(function(*(arg.data for arg in args)))
    return _I.TensorHandle(result.astype(_I._get_np_dtype(scalar)), scalar)


def _bound(function: Any) -> Any:
    """A library function that needs no compiler context from its caller."""

    def call(*args: Any, _semantic: Any = None, _builder: Any = None, **kwargs: Any) -> Any:
        return function(*args, **_CONTEXT, **kwargs)

    call.__name__ = function.__name__
    return call


def install(target: Target) -> None:
    """Give the generic libdevice module the functions of ``target``'s library, and the builder their values.

    A name that only the other vendor's library has is taken from there: which functions a library has is a matter for
    the compile gate, not for numbers.
    """
    _I.InterpreterBuilder.create_extern_elementwise = _extern_elementwise
    generic: Any = importlib.import_module("triton.language.extra.libdevice")
    own = "hip" if target.backend == "hip" else "cuda"
    for name in ("cuda" if own == "hip" else "hip", own):
        library: Any = importlib.import_module(f"triton.language.extra.{name}.libdevice")
        for key, member in list(vars(library).items()):
            if _TL.core.is_builtin(member):
                function = _bound(member)
                setattr(library, key, function)
                if hasattr(generic, key):
                    setattr(generic, key, function)
