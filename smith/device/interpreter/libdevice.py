"""Functions of the device libraries (libdevice, OCML), computed with numpy and torch.

Triton dispatches such a function by argument types to a symbol (``__nv_tanhf``, ``__ocml_tanh_f64``). The interpreter has
no builder for it and the generic module holds stubs that answer None. Here the generic module gets the functions of the
target's own library, and the builder computes a symbol by its name.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

from .refusals import NotInterpretable
from .target import Target

_TL: Any = tl


def _special(name: str) -> Callable[..., Any]:
    """A function of ``torch.special`` on numpy arrays."""

    def compute(*args: Any) -> Any:
        function = getattr(torch.special, name)
        return function(*(torch.from_numpy(np.ascontiguousarray(arg)) for arg in args)).numpy()

    return compute


def _round_half_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x) if np.any(np.abs(x) < 2**22) else x


def _round(x: Any) -> Any:
    magnitude = np.abs(x)
    whole = np.trunc(magnitude)
    return np.copysign(whole + (magnitude - whole >= 0.5), x)


def _ilogb(x: Any) -> Any:
    return (np.frexp(x)[1] - 1).astype(np.int32)


def _popcount(x: Any) -> Any:
    return np.bitwise_count(x)


def _clz(x: Any) -> Any:
    bits = x.dtype.itemsize * 8
    unsigned = x.view(np.dtype(f"u{x.dtype.itemsize}"))
    length = np.vectorize(lambda value: int(value).bit_length(), otypes=[np.int32])(unsigned)
    return bits - length


def _ffs(x: Any) -> Any:
    return np.vectorize(lambda value: (int(value) & -int(value)).bit_length(), otypes=[np.int32])(x)


def _fast(function: Callable[..., Any]) -> Callable[..., Any]:
    """The fast variant of a function: the same value; its error bound is the device's and not imitated."""
    return function


def _exp10(x: Any) -> Any:
    return np.power(np.asarray(10, dtype=x.dtype), x)


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _sinpi(x: Any) -> Any:
    return np.sin(np.pi * np.fmod(x, 2))


def _cospi(x: Any) -> Any:
    return np.cos(np.pi * np.fmod(x, 2))


def _fma(x: Any, y: Any, z: Any) -> Any:
    module: Any = triton_interpreter
    name = "fma_fp32" if z.dtype == np.float32 else "fma_fp64"
    exact = getattr(module._interpreter, name, None)
    if exact is not None:
        return exact(*(np.ascontiguousarray(part) for part in np.broadcast_arrays(x, y, z)))
    if z.dtype == np.float32:
        return np.float64(x) * np.float64(y) + np.float64(z)
    raise NotInterpretable("fma of float64 with this version of Triton")


def _torch(name: str) -> Callable[..., Any]:
    def compute(*args: Any) -> Any:
        return getattr(torch, name)(*(torch.from_numpy(np.ascontiguousarray(arg)) for arg in args)).numpy()

    return compute


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in (
        "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
        "cbrt", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "signbit", "copysign", "nextafter",
        "hypot", "fmod", "ldexp")},
    "abs": np.abs, "fabs": np.abs, "iabs": np.abs, "llabs": np.abs,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "pow": np.power, "powi": np.power, "pown": np.power, "exp10": _exp10, "rsqrt": _rsqrt, "frsqrt_rn": _rsqrt,
    "rcbrt": lambda x: 1 / np.cbrt(x), "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "nearbyint": np.rint, "llrint": np.rint, "round": _round, "llround": _round, "ilogb": _ilogb,
    "logb": lambda x: _ilogb(x).astype(x.dtype), "scalbn": np.ldexp,
    "sinpi": _sinpi, "cospi": _cospi, "fdim": lambda x, y: np.where(x > y, x - y, 0),
    "saturate": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
    "remainder": lambda x, y: x - np.rint(x / y) * y,
    "fma": _fma, "fma_rn": _fma, "maf": _fma, "maf_rn": _fma,
    "div_rn": np.divide, "fast_divide": np.divide, "fast_fdivide": np.divide, "sqrt_rn": np.sqrt,
    "rcp_rn": lambda x: 1 / x, "add_rn": np.add, "mul_rn": np.multiply, "sub_rn": np.subtract,
    **{f"fast_{name}": _fast(getattr(np, name)) for name in ("sin", "cos", "tan", "exp", "log", "log2", "log10", "tanh")},
    "fast_exp10": _exp10, "fast_pow": np.power,
    "erf": _special("erf"), "erfc": _special("erfc"), "erfinv": _special("erfinv"), "erfcx": _special("erfcx"),
    "lgamma": _special("gammaln"), "normcdf": _special("ndtr"), "normcdfinv": _special("ndtri"),
    "i0": _special("i0"), "i1": _special("i1"), "cyl_bessel_i0": _special("i0"), "cyl_bessel_i1": _special("i1"),
    "j0": _special("bessel_j0"), "j1": _special("bessel_j1"), "y0": _special("bessel_y0"), "y1": _special("bessel_y1"),
    "popc": _popcount, "popcount": _popcount, "clz": _clz, "ffs": _ffs,
    "finite": np.isfinite,
}
"""By the name that is common to the libraries."""

_SYMBOL = re.compile(
    r"^(?:__nv_|__ocml_|__ockl_|__triton_hip_|llvm\.)(?P<name>\w+?)(?:\.?_?(?:f16|f32|f64|i32|i64|u32|u64))?$")
_SUFFIXES = ("", "f", "d", "ll")


def function_of(symbol: str) -> Callable[..., Any]:
    """The function that a library symbol computes.

    :raises NotInterpretable: it is none of :data:`FUNCTIONS`.
    """
    match = _SYMBOL.match(symbol)
    name = match["name"] if match else symbol
    for candidate in (name, name[1:]):
        for suffix in _SUFFIXES:
            if candidate.endswith(suffix) and candidate.removesuffix(suffix) in FUNCTIONS:
                if candidate != name and name[0] not in "fd":
                    continue
                return FUNCTIONS[candidate.removesuffix(suffix)]
    raise NotInterpretable(f"the external function {symbol!r}")


def _extern_elementwise(self: Any, library: str, path: str, symbol: str, args: Any, ret_type: Any, is_pure: bool) -> Any:
    module: Any = triton_interpreter
    function = function_of(symbol)
    scalar = ret_type.scalar
    with np.errstate(all="ignore"):
        result = np.asarray(function(*(arg.data for arg in args)))
    return module.TensorHandle(result.astype(module._get_np_dtype(scalar)), scalar)


def _bound(function: Any) -> Any:
    """A library function that needs no ``_semantic`` from its caller."""
    module: Any = triton_interpreter

    def call(*args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        return function(*args, _semantic=module.interpreter_semantic, **kwargs)

    call.__name__ = function.__name__
    return call


def install(target: Target) -> None:
    """Give the generic libdevice module the functions of ``target``'s library, and the builder their values.

    A name that only the other vendor's library has is taken from there: which functions a library has is a matter for
    the compile gate, not for numbers.
    """
    module: Any = triton_interpreter
    module.InterpreterBuilder.create_extern_elementwise = _extern_elementwise
    names = ["cuda", "hip"] if target.backend == "hip" else ["hip", "cuda"]
    generic: Any = importlib.import_module("triton.language.extra.libdevice")
    merged: dict[str, Any] = {}
    for name in names:
        library: Any = importlib.import_module(f"triton.language.extra.{name}.libdevice")
        for key, member in list(vars(library).items()):
            if _TL.core.is_builtin(member):
                merged[key] = _bound(member)
                setattr(library, key, merged[key])
    for key, function in merged.items():
        if hasattr(generic, key):
            setattr(generic, key, function)
