"""What the functions of the device libraries compute, in numpy and torch.

A function is here only if its value is the same wherever it is defined; the fast variants have the value of the exact
ones, since a device's error bound cannot be imitated. What is absent is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from triton.runtime import interpreter as triton_interpreter

from .refusals import NotInterpretable

Function = Callable[..., Any]


def _special(name: str) -> Function:
    """A function of ``torch.special`` on numpy arrays."""

    def compute(*args: Any) -> Any:
        return getattr(torch.special, name)(*(torch.from_numpy(np.ascontiguousarray(arg)) for arg in args)).numpy()

    return compute


def _round(x: Any) -> Any:
    magnitude = np.abs(x)
    whole = np.trunc(magnitude)
    return np.copysign(whole + (magnitude - whole >= 0.5), x)


def _clz(x: Any) -> Any:
    unsigned = x.view(np.dtype(f"u{x.dtype.itemsize}"))
    length = np.vectorize(lambda value: int(value).bit_length(), otypes=[np.int32])(unsigned)
    return x.dtype.itemsize * 8 - length


def _ffs(x: Any) -> Any:
    return np.vectorize(lambda value: (int(value) & -int(value)).bit_length(), otypes=[np.int32])(x)


def _popcount(x: Any) -> Any:
    return np.bitwise_count(x.view(np.dtype(f"u{x.dtype.itemsize}")))


def _exp10(x: Any) -> Any:
    return np.power(np.asarray(10, dtype=x.dtype), x)


def _rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _reciprocal(x: Any) -> Any:
    return 1 / x


def _saturate(x: Any) -> Any:
    return np.where(np.isnan(x), 0, np.clip(x, 0, 1))


def _fma(x: Any, y: Any, z: Any) -> Any:
    """Rounded once where Triton brings the operation along; before that in float64, where a tie may round twice."""
    module: Any = triton_interpreter
    exact = getattr(module._interpreter, "fma_fp32" if z.dtype == np.float32 else "fma_fp64", None)
    if exact is not None:
        return exact(*(np.ascontiguousarray(part) for part in np.broadcast_arrays(x, y, z)))
    if z.dtype == np.float32:
        return np.float64(x) * np.float64(y) + np.float64(z)
    raise NotInterpretable("fma of float64 with this version of Triton")


# fmt: off
_SAME_NAME = (
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt",
    "cbrt", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "signbit", "copysign", "nextafter", "hypot",
    "fmod", "ldexp",
)
# fmt: on

_OTHER_NAME: dict[str, Function] = {
    **dict.fromkeys(("abs", "fabs", "iabs", "llabs"), np.abs),
    **dict.fromkeys(("pow", "powi", "pown", "fast_pow"), np.power),
    **dict.fromkeys(("nearbyint", "llrint"), np.rint),
    **dict.fromkeys(("round", "llround"), _round),
    **dict.fromkeys(("rsqrt", "frsqrt_rn"), _rsqrt),
    **dict.fromkeys(("fdiv_rn", "ddiv_rn", "fast_divide", "fast_fdivide"), np.divide),
    **dict.fromkeys(("fadd_rn", "dadd_rn"), np.add),
    **dict.fromkeys(("fsub_rn", "dsub_rn"), np.subtract),
    **dict.fromkeys(("fmul_rn", "dmul_rn"), np.multiply),
    **dict.fromkeys(("fsqrt_rn", "dsqrt_rn"), np.sqrt),
    **dict.fromkeys(("frcp_rn", "drcp_rn"), _reciprocal),
    **dict.fromkeys(("fma", "fma_rn", "fmaf_rn"), _fma),
    **dict.fromkeys(("exp10", "fast_exp10"), _exp10),
    **dict.fromkeys(("popc", "popcount"), _popcount),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "finite": np.isfinite,
    "saturate": _saturate,
    "scalbn": np.ldexp,
    "clz": _clz,
    "ffs": _ffs,
}

_OF_TORCH = {
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "erfcx": "erfcx",
    "lgamma": "gammaln",
    "normcdf": "ndtr",
    "normcdfinv": "ndtri",
    "i0": "i0",
    "i1": "i1",
    "cyl_bessel_i0": "i0",
    "cyl_bessel_i1": "i1",
    "j0": "bessel_j0",
    "j1": "bessel_j1",
    "y0": "bessel_y0",
    "y1": "bessel_y1",
}

FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, name) for name in _SAME_NAME},
    **{f"fast_{name}": getattr(np, name) for name in ("sin", "cos", "tan", "exp", "log", "log2", "log10", "tanh")},
    **_OTHER_NAME,
    **{name: _special(function) for name, function in _OF_TORCH.items()},
}
"""By the name that a function has in the libraries without prefix and type suffix."""
