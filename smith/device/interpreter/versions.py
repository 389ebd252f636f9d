"""What differs between versions of Triton: one small adapter for each difference, applied by version.

Tried with Triton 3.3, 3.4, 3.6 and 3.9. What can be told from the thing itself is told from there, the rest by number.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

_I: Any = triton_interpreter
_TL: Any = tl


def triton_version() -> tuple[int, int]:
    """Major and minor version of the Triton in this process."""
    major, minor, *_ = triton.__version__.split(".")
    return int(major), int(minor)


def index_one_element() -> None:
    """Before 3.9: ``int(array([3]))`` is an error in numpy since 2.4 ("only 0-dimensional arrays can be converted")."""
    original = _I._patch_lang_tensor

    def _patch_lang_tensor(tensor: Any, *scope: Any) -> None:
        original(tensor, *scope)
        tensor.__index__ = lambda self: int(np.asarray(self.handle.data).reshape(-1)[0])

    _I._patch_lang_tensor = _patch_lang_tensor


def visit_assigned_values() -> None:
    """Before 3.8 or so the rewriter does not descend into the right-hand side of an assignment."""
    cls: Any = _I.ASTTransformer
    original = cls.visit_Assign
    if "self.visit(node.value)" in inspect.getsource(original):
        return

    def visit_Assign(self: Any, node: ast.Assign) -> Any:
        node.value = self.visit(node.value)
        return original(self, node)

    cls.visit_Assign = visit_Assign


def ignore_nan_in_min_max() -> None:
    """Before 3.9: ``tl.minimum`` and ``tl.max`` propagate NaN; on a GPU they do so only when asked to."""
    builder: Any = _I.InterpreterBuilder
    builder.create_minnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmin)
    builder.create_maxnumf = lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmax)
    original = _I.ReduceOps.min_max
    ignoring = {np.min: np.nanmin, np.max: np.nanmax, np.argmin: np.nanargmin, np.argmax: np.nanargmax}

    def min_max(self: Any, input: Any, val_reduce_op: Any, idx_reduce_op: Any = None) -> Any:
        return original(
            self,
            input,
            ignoring.get(val_reduce_op, val_reduce_op),
            ignoring.get(idx_reduce_op, idx_reduce_op),
        )

    _I.ReduceOps.min_max = min_max


def clamp_as_a_gpu() -> None:
    """Before 3.9: ``tl.clamp`` propagates NaN; on a GPU it does so only when asked to."""
    builder: Any = _I.InterpreterBuilder
    clip = builder.create_clampf

    def create_clampf(self: Any, arg: Any, low: Any, high: Any, propagate_nans: Any) -> Any:
        if propagate_nans != _I._ir.PROPAGATE_NAN.NONE:
            return clip(self, arg, low, high, propagate_nans)
        return self.binary_op(self.binary_op(arg, low, np.fmax), high, np.fmin)

    builder.create_clampf = create_clampf


def know_fnuz_formats() -> None:
    """Before 3.5 or so: ``fail to convert fp8e4b8 to ir type``."""
    original = _I._patch_lang_core

    def _patch_lang_core(lang: Any, *scope: Any) -> None:
        original(lang, *scope)
        to_ir = lang.dtype.to_ir
        fnuz = ("fp8e4b8", "fp8e5b16")
        lang.dtype.to_ir = lambda self, builder: self if self.name in fnuz else to_ir(self, builder)

    if "fp8e4b8" not in inspect.getsource(original):
        _I._patch_lang_core = _patch_lang_core


def fuse_multiply_add() -> None:
    """Before 3.9: fma rounds twice. In float64 the product of two float32 is exact."""

    if hasattr(_I._interpreter, "fma_fp32"):
        return

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        dtype = z.data.dtype
        if dtype.kind != "f" or dtype == np.float64:
            return _I.TensorHandle(x.data * y.data + z.data, z.dtype.scalar)
        product = np.multiply(x.data, y.data, dtype=np.float64)
        return _I.TensorHandle(np.add(product, z.data, dtype=np.float64).astype(dtype), z.dtype.scalar)

    _I.InterpreterBuilder.create_fma = create_fma


def wrap_small_integers() -> None:
    """Before 3.9: sums of int1 saturate, and results that numpy widened keep the wide storage."""

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Callable[..., Any]) -> Any:
        dtype = lhs.dtype.scalar
        if lhs.data.dtype == np.bool_ and rhs.data.dtype == np.bool_:
            output = (op(lhs.data.astype(np.int8), rhs.data.astype(np.int8)) & 1).astype(np.bool_)
        else:
            output = op(lhs.data, rhs.data)
        bits = 64 if isinstance(dtype, _TL.pointer_type) else max(8, dtype.primitive_bitwidth)
        if output.itemsize * 8 > bits:
            output = output.astype(_I._get_np_dtype(dtype))
        return _I.TensorHandle(output, dtype)

    _I.InterpreterBuilder.binary_op = binary_op


def install() -> None:
    """Apply what this process's Triton needs; before every other patch, so that those see one behaviour."""
    visit_assigned_values()
    know_fnuz_formats()
    if triton_version() < (3, 9):
        index_one_element()
        ignore_nan_in_min_max()
        wrap_small_integers()
        fuse_multiply_add()
        clamp_as_a_gpu()
