"""Whose pointer it is: handles of pointers remember the argument that they were computed from.

Without that an access just behind one tensor that happens to hit another would go unseen. A handle whose origin is lost
on the way (or was never known) is checked against all allocations of the launch instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.runtime import interpreter as triton_interpreter

from . import launched

_I: Any = triton_interpreter

_CARRYING = (
    "create_addptr",
    "create_bitcast",
    "create_broadcast",
    "create_expand_dims",
    "create_reshape",
    "create_splat",
    "create_trans",
    "create_unsplat",
)
"""Operations of the builder whose result points into what one of their operands points into."""

FOREIGN = object()
"""The origin of a pointer that was made of an integer."""


def origin_of(handle: Any) -> Any:
    """The :class:`~.launched.Argument` that a pointer comes from, :data:`FOREIGN`, or None where it is not known."""
    return getattr(handle, "smith_origin", None) if isinstance(handle, _I.TensorHandle) else None


def _carrying(original: Callable[..., Any]) -> Callable[..., Any]:
    def carried(self: Any, *operands: Any, **named: Any) -> Any:
        result = original(self, *operands, **named)
        for operand in operands:
            origin = origin_of(operand)
            if origin is not None:
                result.smith_origin = origin
                break
        return result

    return carried


def _select(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_select(self: Any, condition: Any, lhs: Any, rhs: Any) -> Any:
        result = original(self, condition, lhs, rhs)
        if origin_of(lhs) is origin_of(rhs) is not None:
            result.smith_origin = origin_of(lhs)
        return result

    return create_select


def _int_to_ptr(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_int_to_ptr(self: Any, *operands: Any) -> Any:
        result = original(self, *operands)
        result.smith_origin = FOREIGN
        if launched.current is not None:
            launched.current.unknown = True
        return result

    return create_int_to_ptr


def _convert(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def _implicit_cvt(arg: Any) -> Any:
        result = original(arg)
        if launched.current is not None and hasattr(arg, "data_ptr"):
            result.handle.smith_origin = launched.current.arguments.get(int(arg.data_ptr()))
        return result

    return _implicit_cvt


def _materialize(cls: Any) -> None:
    original = cls.materialize_pointers

    def materialize_pointers(self: Any, *args: Any) -> Any:
        pointers, mask = original(self, *args)
        pointers.smith_origin = origin_of(self.base)
        return pointers, mask

    cls.materialize_pointers = materialize_pointers


def install() -> None:
    """Patch the builder, and the conversion of arguments."""
    builder = _I.InterpreterBuilder
    builder.create_int_to_ptr = _int_to_ptr(builder.create_int_to_ptr)
    for name in _CARRYING:
        if name in vars(builder):  # versions differ
            setattr(builder, name, _carrying(getattr(builder, name)))
    builder.create_select = _select(builder.create_select)
    _I._implicit_cvt = _convert(_I._implicit_cvt)
    for name in ("BlockPointerHandle", "TensorDescHandle"):
        if hasattr(_I, name):
            _materialize(getattr(_I, name))
