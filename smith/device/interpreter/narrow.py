"""bfloat16 and fp8 in the interpreter: compute in float32, round back.

Triton's interpreter stores these types as bare 16- and 8-bit integers and computes on the bit patterns: sums of
patterns, comparisons of patterns, casts that truncate. Every operation is replaced here, in the builder (arithmetic,
comparisons, casts, dot, atomics, padding) and in the reductions and scans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

from .formats import FORMATS, Format, step_toward_zero
from .refusals import NotInterpretable

_I: Any = triton_interpreter
_TL: Any = tl


def format_of(handle: Any) -> Format | None:
    """The narrow format in which ``handle`` is stored, or None.

    :raises NotInterpretable: for a format that has no table (``fp8e4b15``).
    """
    name = getattr(getattr(getattr(handle, "dtype", None), "scalar", None), "name", None)
    if name == "fp8e4b15":
        raise NotInterpretable("the fp8e4b15 format")
    fmt = FORMATS.get(name) if isinstance(name, str) else None
    return fmt if fmt is not None and handle.data.dtype == fmt.storage else None


def widen(handle: Any) -> Any:
    """``handle`` as float32 where it is narrow, else as it is."""
    fmt = format_of(handle)
    return handle if fmt is None else _I.TensorHandle(fmt.decode(handle.data), _TL.float32)


def narrow(handle: Any, dtype: Any, *, toward_zero: bool = False) -> Any:
    """The float handle ``handle`` rounded to the narrow ``dtype``; a boolean result becomes int1 instead."""
    if handle.data.dtype == np.bool_:
        return _I.TensorHandle(handle.data, _TL.int1)
    fmt = FORMATS[dtype.scalar.name]
    return _I.TensorHandle(fmt.encode(handle.data.astype(np.float32), toward_zero=toward_zero), dtype.scalar)


def _wide(method: Callable[..., Any], operands: int) -> Callable[..., Any]:
    """``method`` of the builder with its first ``operands`` handles widened and its result rounded back."""

    def computed_wide(self: Any, *args: Any) -> Any:
        formats = [format_of(arg) for arg in args[:operands]]
        if not any(formats):
            return method(self, *args)
        dtype = next(arg.dtype for arg, fmt in zip(args, formats, strict=False) if fmt)
        with np.errstate(all="ignore"):
            result = method(self, *(widen(arg) for arg in args[:operands]), *args[operands:])
        return narrow(result, dtype)

    return computed_wide


def _cast(original: Callable[..., Any]) -> Callable[..., Any]:
    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        target = dst_type.scalar
        if target.name == "fp8e4b15":
            raise NotInterpretable("the fp8e4b15 format")
        if format_of(src) is None and target.name not in FORMATS:
            return original(self, src, dst_type)
        if target.name in FORMATS:
            return narrow(_float32(src), target)
        return original(self, widen(src), dst_type)

    return cast_impl


def _float32(handle: Any) -> Any:
    wide = widen(handle)
    return _I.TensorHandle(wide.data.astype(np.float32), _TL.float32)


def _fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
    """Conversions between float formats with a declared rounding, which the interpreter gets wrong at ties."""
    target = dst_type.scalar
    toward_zero = rounding_mode is not None and rounding_mode == _I._ir.ROUNDING_MODE.RTZ
    wide = widen(src)
    if target.name in FORMATS:
        return narrow(_float32(src), target, toward_zero=toward_zero)
    data = wide.data.astype(_I._get_np_dtype(target))
    if toward_zero and data.dtype.itemsize < wide.data.dtype.itemsize:
        unsigned = np.dtype(f"u{data.dtype.itemsize}")
        data = step_toward_zero(data.view(unsigned), data, wide.data).view(data.dtype)
    return _I.TensorHandle(data, target)


def _dot(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_dot(self: Any, a: Any, b: Any, d: Any, *options: Any) -> Any:
        dtype = d.dtype
        result = original(self, widen(a), widen(b), widen(d), *options)
        return narrow(result, dtype) if dtype.scalar.name in FORMATS else result

    return create_dot


def _atomic_rmw(original: Callable[..., Any]) -> Callable[..., Any]:
    """Read-modify-write of narrow floats, one element after the other: pointers in one block may be equal."""

    def create_atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *options: Any) -> Any:
        fmt = format_of(val)
        if fmt is None:
            return original(self, op, ptr, val, mask, *options)
        combine = _combiners().get(op)
        if combine is None:
            raise NotInterpretable(f"atomic {op} on {val.dtype.scalar.name}")
        pointers, values, active = np.broadcast_arrays(ptr.data, val.data, mask.data)
        before: Any = np.zeros(pointers.shape, dtype=fmt.storage)
        for index in np.ndindex(pointers.shape):
            if not active[index]:
                continue
            address = np.array([pointers[index]], dtype=np.uint64)
            always = np.ones(1, dtype=bool)
            old = _I._interpreter.load(address, always, np.zeros(1, dtype=fmt.storage), np.dtype(fmt.storage))
            new = fmt.encode(combine(fmt.decode(old), fmt.decode(values[index].reshape(1))))
            _I._interpreter.store(address, new, always)
            before[index] = old[0]
        return _I.TensorHandle(before, val.dtype.scalar)

    return create_atomic_rmw


def _combiners() -> dict[Any, Callable[[Any, Any], Any]]:
    ops = _I._ir.ATOMIC_OP
    return {
        ops.FADD: np.add,
        ops.ADD: np.add,
        ops.MAX: np.fmax,
        ops.MIN: np.fmin,
        ops.XCHG: lambda old, new: new,
    }


def _descriptor_load(original: Callable[..., Any]) -> Callable[..., Any]:
    """Padding with NaN: the interpreter converts NaN to the storage integer, which is no NaN."""

    def create_descriptor_load(self: Any, desc: Any, indices: Any, *options: Any) -> Any:
        pads_nan = getattr(desc, "padding", None) == getattr(_I._ir.PADDING_OPTION, "PAD_NAN", object())
        dtype = desc.base.get_element_ty()
        fmt = FORMATS.get(dtype.name)
        if not pads_nan or fmt is None:
            return original(self, desc, indices, *options)
        pointers, mask = desc.materialize_pointers(indices)
        fill = fmt.encode(np.full(pointers.data.shape, np.nan, dtype=np.float32))
        return self.create_masked_load(pointers, mask, _I.TensorHandle(fill, dtype), *options, False)

    return create_descriptor_load


_WIDENABLE = (
    "_sum_combine",
    "_prod_combine",
    "_elementwise_max",
    "_elementwise_min",
    "_argmax_combine_tie_break_left",
    "_argmax_combine_tie_break_fast",
    "_argmin_combine_tie_break_left",
    "_argmin_combine_tie_break_fast",
)


class _SameType:
    """A user's combine function that may not return another type than it got: results are stored by bit pattern."""

    def __init__(self, combine_fn: Any) -> None:
        self._combine_fn = combine_fn

    def fn(self, *args: Any) -> Any:
        result = self._combine_fn.fn(*args)
        values = result if isinstance(result, tuple) else (result,)
        for value, arg in zip(values, args, strict=False):
            if getattr(value, "dtype", None) != arg.dtype:
                raise TypeError(f"combine function returns {getattr(value, 'dtype', type(value))} for {arg.dtype}")
        return result


def _reduction(original: Callable[..., Any]) -> Callable[..., Any]:
    """Reductions and scans: the standard ones over float32; a user's own one step by step in the narrow type."""

    def apply_impl(self: Any, input: Any) -> Any:
        formats = [format_of(arg.handle) for arg in input]
        if not any(formats):
            return original(self, input)
        standard = [getattr(_TL.standard, name, None) for name in _WIDENABLE]
        if not any(self.combine_fn is known for known in standard if known is not None):
            self.combine_fn = _SameType(self.combine_fn)
            return original(self, input)
        result = original(self, tuple(_retype(arg, widen(arg.handle)) for arg in input))
        values = result if isinstance(result, (list, tuple)) else (result,)
        rounded = [
            _retype(value, narrow(value.handle, source.dtype)) if fmt is not None else value
            for value, source, fmt in zip(values, input, formats, strict=False)
        ]
        return rounded if isinstance(result, (list, tuple)) else rounded[0]

    return apply_impl


def _retype(tensor: Any, handle: Any) -> Any:
    shape = list(tensor.shape)
    return _TL.tensor(handle, _TL.block_type(handle.dtype, shape) if shape else handle.dtype)


def _operand_values(handle: Any) -> Any:
    """Values of an operand of ``tl.dot_scaled``; through float16, as upstream does it, bfloat16 loses its range."""
    if handle.dtype == _TL.uint8:
        return _I._e2m1_to_f32(handle.data)
    return _float32(handle).data


def install() -> None:
    """Patch the interpreter's builder, reductions and scans."""
    builder: Any = _I.InterpreterBuilder
    for name, operands in (
        ("binary_op", 2),
        ("unary_op", 1),
        ("create_fabs", 1),
        ("create_fma", 3),
        ("create_clampf", 3),
        ("create_erf", 1),
        ("create_rsqrt", 1),
    ):
        setattr(builder, name, _wide(getattr(builder, name), operands))
    builder.cast_impl = _cast(builder.cast_impl)
    builder.create_fp_to_fp = _fp_to_fp
    builder.create_dot = _dot(builder.create_dot)
    builder.create_atomic_rmw = _atomic_rmw(builder.create_atomic_rmw)
    if hasattr(builder, "create_descriptor_load"):
        builder.create_descriptor_load = _descriptor_load(builder.create_descriptor_load)
    for name in FORMATS:
        setattr(
            builder,
            f"get_{name}",
            lambda self, value, name=name: narrow(self.get_fp32(value), _TL.dtype(name)),
        )
    for cls in (_I.ReduceOps, _I.ScanOps):
        cls.apply_impl = _reduction(cls.apply_impl)
    if hasattr(_I, "_mxfp_value_handle_to_float32"):
        _I._mxfp_value_handle_to_float32 = _operand_values
