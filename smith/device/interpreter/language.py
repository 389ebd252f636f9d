"""The language inside a kernel: scalars, loop variables, masks, hints and grids as a GPU sees them.

On a GPU every run-time value in a kernel is a typed tensor. In the interpreter float arguments and loop variables stay
Python numbers, which have no ``.to`` and promote differently; here they become tensors.
"""

from __future__ import annotations

import ast
import inspect
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

_I: Any = triton_interpreter
_TL: Any = tl


def scalar_tensor(value: bool | int | float) -> Any:
    """A Python number as the scalar tensor that a GPU would get for it."""
    if isinstance(value, bool):
        return _TL.tensor(_I.TensorHandle(np.array([value], dtype=np.bool_), _TL.int1), _TL.int1)
    if isinstance(value, int):
        wide = not -(2**31) <= value < 2**31
        dtype, storage = (_TL.int64, "int64") if wide else (_TL.int32, "int32")
        if value >= 2**63:
            dtype, storage = _TL.uint64, "uint64"
        return _TL.tensor(_I.TensorHandle(np.array([value], dtype=storage), dtype), dtype)
    return _TL.tensor(_I.TensorHandle(np.array([value], dtype=np.float32), _TL.float32), _TL.float32)


def smith_to(value: Any, *args: Any, **kwargs: Any) -> Any:
    """``value.to(...)`` where ``value`` may have stayed a Python number."""
    if isinstance(value, (bool, int, float)):
        value = scalar_tensor(value)
    return value.to(*args, **kwargs)


def smith_range(function: Any, *args: Any, **kwargs: Any) -> Any:
    """``function(...)`` (``range`` or ``tl.range``) with loop variables of the type that the bounds have."""
    values = function(*args, **kwargs)
    return _typed(values, args) if isinstance(values, range) else values


def _typed(values: range, bounds: tuple[Any, ...]) -> Iterator[Any]:
    wide = any(getattr(getattr(bound, "dtype", None), "primitive_bitwidth", 0) == 64 for bound in bounds)
    for value in values:
        variable = scalar_tensor(value)
        if wide:
            handle = _I.TensorHandle(variable.handle.data.astype(np.int64), _TL.int64)
            variable = _TL.tensor(handle, _TL.int64)
        yield variable


def _is_range(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "range") or (
        isinstance(node, ast.Attribute) and node.attr == "range"
    )


def _extend_transformer() -> None:
    cls: Any = _I.ASTTransformer
    visit_call = getattr(cls, "visit_Call", None)

    def visit_Call(self: Any, node: ast.Call) -> ast.AST:
        call = visit_call(self, node) if visit_call is not None else self.generic_visit(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            helper = ast.Name("smith_to", ast.Load())
            return ast.copy_location(ast.Call(helper, [call.func.value, *call.args], call.keywords), node)
        return call  # type: ignore[no-any-return]

    def visit_For(self: Any, node: ast.For) -> ast.AST:
        if isinstance(node.iter, ast.Call) and _is_range(node.iter.func):
            call = node.iter
            helper = ast.Name("smith_range", ast.Load())
            node.iter = ast.copy_location(ast.Call(helper, [call.func, *call.args], call.keywords), call)
        self.generic_visit(node)
        return node

    cls.visit_Call, cls.visit_For = visit_Call, visit_For
    _I.smith_to, _I.smith_range = smith_to, smith_range


def _convert_arguments() -> None:
    original: Callable[[Any], Any] = _I._implicit_cvt

    def _implicit_cvt(arg: Any) -> Any:
        return scalar_tensor(arg) if isinstance(arg, (bool, float)) else original(arg)

    _I._implicit_cvt = _implicit_cvt


def _boolean(mask: Any) -> Any:
    """A mask as int1: ``mask & flag`` with an integer flag is an integer, which the loads refuse."""
    if mask is None:
        return None
    if isinstance(mask.data, _I.TensorHandle):
        mask = mask.data
    dtype = getattr(mask.data, "dtype", None)
    return mask if dtype is None or dtype == np.bool_ else _I.TensorHandle(mask.data.astype(np.bool_), _TL.int1)


def _accept_masks() -> None:
    builder: Any = _I.InterpreterBuilder
    load, store, rmw = builder.create_masked_load, builder.create_masked_store, builder.create_atomic_rmw

    def create_masked_load(self: Any, ptrs: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        return load(self, ptrs, _boolean(mask), *rest, **named)

    def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        return store(self, ptrs, value, _boolean(mask), *rest, **named)

    def create_atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        return rmw(self, op, ptr, val, _boolean(mask), *rest)

    builder.create_masked_load, builder.create_masked_store = create_masked_load, create_masked_store
    builder.create_atomic_rmw = create_atomic_rmw


class _NothingToRestore:
    def restore(self) -> None:
        pass


def _open_language() -> None:
    """Patch ``triton.language`` once and for good.

    The interpreter does it again for every launch, which is slow, and (by version) undoes it: a module's alias
    ``exp = tl.exp`` then holds the unpatched function and asks ``Did you forget to add @triton.jit ?``.
    """
    _I._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": _TL.core}))
    _I._patch_lang = lambda fn: _NothingToRestore()


def _plain_grids() -> None:
    """A callable grid gets the arguments as the host passed them; lists and tensors become tuples of int."""
    executor: Any = _I.GridExecutor
    original = executor.__call__

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if callable(self.grid):
            spec = inspect.getfullargspec(self.fn)
            named = {key: value for key, value in kwargs.items() if key in spec.args or key in spec.kwonlyargs}
            grid = self.grid(inspect.getcallargs(self.fn, *args, **named))
        else:
            grid = self.grid
        self.grid = tuple(int(size) for size in grid)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, of NaN and overflow: ordinary in a kernel
            return original(self, *args, **kwargs)

    executor.__call__ = __call__


def require_interpreted() -> None:
    """Check that Triton's own library is interpreted.

    :raises RuntimeError: Triton was imported before ``TRITON_INTERPRET=1`` was set, and nothing can mend that.
    """
    if not isinstance(_TL.standard._sum_combine, _I.InterpretedFunction):
        raise RuntimeError("triton was imported in compile mode before the interpreter device was installed")


def install(*, strict_assume: bool = False) -> None:
    """Patch the interpreter; with ``strict_assume`` an assumption that does not hold stays an error."""
    _extend_transformer()
    _convert_arguments()
    _accept_masks()
    _open_language()
    _plain_grids()
    if not strict_assume:
        _I.InterpreterBuilder.create_assume = lambda self, condition: None
