"""Fresh values for a recorded call, drawn from a seed; the same seed gives the same bytes everywhere."""

from __future__ import annotations

import math
from typing import Any, Literal

from smith.oracle.arrays import EPSILON, Array, encode
from smith.records.workload import CallSpec, Fill, TensorSpec, Value

Variation = Literal["", "rounded", "upcast"]
"""Nothing; floating-point values moved by one unit in their last place; that with half precision as single."""
HALF = ("float16", "bfloat16")


def draw(call: CallSpec, seed: int, number: int, turn: int, variation: Variation = "") -> list[bytes]:
    """The bytes of the tensors of ``call`` in their order, then of the gradients that come back to its outputs.

    ``number`` is the call's place in the workload, ``turn`` the pass.
    """
    import numpy as np

    blobs = []
    for place, spec in enumerate(call.tensors):
        generator = np.random.Generator(np.random.PCG64([seed, number, turn, place]))
        blobs.append(_tensor(generator, spec, variation))
    for upstream in call.upstream:
        generator = np.random.Generator(np.random.PCG64([seed, number, turn, 1000 + upstream.output]))
        blobs.append(_tensor(generator, upstream.tensor, variation))
    return blobs


def _tensor(generator: Any, spec: TensorSpec, variation: Variation) -> bytes:
    shape = spec.drawn_shape
    count = math.prod(shape)
    data = encode(_values(generator, spec.fill, count, spec.dtype), spec.dtype)
    if spec.dtype not in EPSILON or not variation:
        return data
    values = Array(shape, spec.dtype, "", data).numbers()
    dtype = single(spec.dtype) if variation == "upcast" else spec.dtype
    return encode(values * (1 + EPSILON[dtype] * generator.choice((-1.0, 1.0), size=count)), dtype)


def _values(generator: Any, fill: Fill, count: int, dtype: str) -> Any:
    import numpy as np

    match fill.kind:
        case "normal":
            return _normal(generator, fill, count)
        case "share":
            return generator.random(count) < fill.mean
        case "uniform":
            return generator.integers(int(fill.low), int(fill.high), size=count, endpoint=True)
        case "exact" | "shuffled":
            values = np.array(fill.values, dtype=np.int64)
            if len(values) != count:
                raise ValueError(f"{len(values)} values for a tensor of {count} elements")
            return generator.permutation(values) if fill.kind == "shuffled" else values
        case "drawn":
            return generator.choice(np.array(fill.values, dtype=np.int64), size=count)


def _normal(generator: Any, fill: Fill, count: int) -> Any:
    import numpy as np

    values = fill.mean + fill.std * generator.standard_normal(count)
    if fill.low < fill.high:
        # Outside of what was seen (a probability above 1, a logarithm above 0) a call may mean nothing.
        outside = (values < fill.low) | (values > fill.high)
        values = np.where(outside, generator.uniform(fill.low, fill.high, count), values)
    kinds = generator.random(count)
    edge = 0.0
    for share, value in (
        (fill.zeros, 0.0),
        (fill.nans, math.nan),
        (fill.infs, math.inf),
        (fill.minus_infs, -math.inf),
    ):
        values = np.where((kinds >= edge) & (kinds < edge + share), value, values)
        edge += share
    return values


def single(dtype: str) -> str:
    """The type in which half precision is computed more exactly; others stay."""
    return "float32" if dtype in HALF else dtype


def upcast(call: CallSpec) -> CallSpec | None:
    """The same call in single precision; None where nothing in it is of half."""

    def spec(tensor: TensorSpec) -> TensorSpec:
        return tensor.model_copy(update={"dtype": single(tensor.dtype)})

    def value(one: Value) -> Value:
        update: dict[str, Any] = {"items": tuple(value(item) for item in one.items)}
        if one.tensor is not None:
            update["tensor"] = spec(one.tensor)
        if one.kind == "dtype":
            update["text"] = single(one.text)
        return one.model_copy(update=update)

    if not any(tensor.dtype in HALF for tensor in call.tensors):
        return None
    return call.model_copy(
        update={
            "args": tuple(map(value, call.args)),
            "kwargs": {name: value(one) for name, one in call.kwargs.items()},
            "state": tuple(one.model_copy(update={"tensor": spec(one.tensor)}) for one in call.state),
            "upstream": tuple(one.model_copy(update={"tensor": spec(one.tensor)}) for one in call.upstream),
        }
    )
