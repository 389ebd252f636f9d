"""The same call in other shapes and layouts: what hidden tests might have asked for and did not.

Nothing here knows what a call means, so a variant is only a proposal; whoever makes it asks the reference whether it is
one. Sizes that are equal in a call are changed together. ``odd``: all sizes odd and a little larger; ``long``: the
largest size longer than a usual block, and prime; ``strided``: every other element of a larger tensor; ``padded``: rows
apart from each other; ``offset``: contiguous, far into a larger storage, at an odd element; ``empty``: a size is 0.
``recorded`` is the call as it was recorded. What lies around a tensor of a layout variant is infinite, of whole numbers
0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, cycle, islice, pairwise
from typing import Any, Literal, get_args

from smith.oracle.arrays import expected_bytes
from smith.records.workload import FLOATS, MOST_VALUES, CallSpec, Fill, TensorSpec, Value

Name = Literal["recorded", "odd", "long", "strided", "padded", "offset", "empty"]
NAMES: tuple[Name, ...] = get_args(Name)
LAYOUTS: tuple[Name, ...] = ("strided", "padded", "offset")
"""Those that leave values and shapes as they are, so that the result must stay as it is."""
LONG = 1031
"""A prime above the usual blocks of 1,024."""
NEAR, FAR, PADDING = 5, (1 << 20) + 3, 3
"""Elements before a tensor in its storage, few and many, and between its rows."""
MOST_BYTES = 16 << 20
"""Of the tensors of one variant of a call."""
SINGLE_SIZES = 2
"""How many sizes are changed one at a time where changing all of them is refused."""

Sizes = Mapping[int, int]


@dataclass(frozen=True)
class Proposal:
    """A variant of a call. Of one name there may be several, the first that holds is meant."""

    name: Name
    call: CallSpec


def proposals(call: CallSpec) -> list[Proposal]:
    """Variants of ``call`` by name, each different from it and of bounded size, the likeliest of a name first."""
    found = [Proposal("recorded", call)]
    seen = {call.signature}
    for name, one in _all(call):
        if one is not None and one.signature not in seen and _bytes(one) <= MOST_BYTES:
            seen.add(one.signature)
            found.append(Proposal(name, one))
    return found


def _all(call: CallSpec) -> Iterator[tuple[Name, CallSpec | None]]:
    sizes = sorted({size for tensor in call.tensors for size in tensor.shape if size > 1})
    if sizes:
        for one in _ways(call, _odd(sizes)):
            yield "odd", one
        for size in sizes[: -SINGLE_SIZES - 1 : -1]:
            for one in _ways(call, _odd([size])):
                yield "odd", one
        for one in _ways(call, {sizes[-1]: LONG if sizes[-1] < LONG else 2 * sizes[-1] + 1}):
            yield "long", one
    for name in LAYOUTS:
        yield name, laid_out(call, name)
    first = next((tensor for value in call.args for tensor in value.tensors if tensor.shape), None)
    for size in dict.fromkeys((first.shape[0], max(first.shape))) if first is not None else ():
        for one in _ways(call, {size: 0}):
            yield "empty", one


def _odd(sizes: Sequence[int]) -> Sizes:
    """Odd and larger, different ones staying different."""
    found: dict[int, int] = {}
    last = 0
    for size in sizes:
        found[size] = last = max(size + 1 + size % 2, last + 2)
    return found


def _ways(call: CallSpec, sizes: Sizes) -> Iterator[CallSpec | None]:
    """The call with other sizes: with the numbers that equal one, without them, with products of two made anew."""
    yield resized(call, sizes, numbers=True)
    yield resized(call, sizes, numbers=False)
    yield resized(call, sizes, numbers=True, products=True)


# -- sizes -----------------------------------------------------------------------------------------------------------


def resized(call: CallSpec, sizes: Sizes, *, numbers: bool, products: bool = False) -> CallSpec | None:
    """The call with each size of ``sizes`` replaced, wherever it stands; None where values would have to be invented.

    With ``numbers`` whole numbers among the arguments that equal such a size are replaced too; with ``products`` a size
    or number that is the product of two sizes of the call becomes the product of what those become.
    """
    known = {size for tensor in call.tensors for size in tensor.shape if size > 1}
    made = _products(known) if products else {}

    def size(one: int) -> int:
        if one in made:
            return math.prod(sizes.get(factor, factor) for factor in made[one])
        return sizes.get(one, one)

    def tensor(spec: TensorSpec) -> TensorSpec:
        shape = tuple(map(size, spec.shape))
        return spec if shape == spec.shape else _reshaped(spec, shape)

    def number(one: int) -> int:
        return size(one) if numbers and one > 1 else one

    try:
        return _changed(call, tensor, number)
    except ValueError:
        return None


def _products(sizes: set[int]) -> dict[int, tuple[int, int]]:
    pairs = combinations_with_replacement(sorted(sizes), 2)
    return {a * b: (a, b) for a, b in pairs}


def _reshaped(spec: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    """Raises :class:`ValueError` where the values of whole numbers cannot be continued."""
    strides = _restrided(spec, shape)
    drawn = [1 if strides and strides[place] == 0 and size else size for place, size in enumerate(shape)]
    fill = spec.fill if spec.dtype in FLOATS else refilled(spec.fill, math.prod(drawn))
    fields = {name: getattr(spec, name) for name in type(spec).model_fields}
    return TensorSpec(**fields | {"shape": shape, "strides": strides, "fill": fill})


def _restrided(spec: TensorSpec, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in the same order, with the same gaps between."""
    if not spec.strides:
        return ()
    order = sorted((n for n, stride in enumerate(spec.strides) if stride), key=lambda n: spec.strides[n])
    found = [0] * len(shape)
    for inner, outer in zip([None, *order], order, strict=False):
        if inner is None:
            found[outer] = spec.strides[outer]
            continue
        gap = max(0, spec.strides[outer] - spec.strides[inner] * spec.shape[inner])
        found[outer] = found[inner] * max(1, shape[inner]) + gap
    return tuple(found)


def refilled(fill: Fill, count: int) -> Fill:
    """The same for ``count`` elements. Raises :class:`ValueError` where values in order do not go on evenly, or are too
    many."""
    values = fill.values
    if fill.kind in ("exact", "shuffled") and count > MOST_VALUES:
        raise ValueError(f"{count} values")
    if fill.kind == "shuffled":
        if count and not values:
            raise ValueError("no values to repeat")
        return fill.model_copy(update={"values": tuple(islice(cycle(values), count)) if values else ()})
    if fill.kind != "exact" or count == len(values):
        return fill
    if count < len(values):
        return fill.model_copy(update={"values": values[:count]})
    steps = {b - a for a, b in pairwise(values)}
    if len(steps) != 1:
        raise ValueError("values that are in order cannot be continued")
    step = steps.pop()
    return fill.model_copy(update={"values": tuple(values[0] + step * n for n in range(count))})


# -- layouts ---------------------------------------------------------------------------------------------------------


def laid_out(call: CallSpec, name: Name) -> CallSpec | None:
    """The call with its contiguous arguments laid out otherwise, the values as they are; None where it has none.

    Parameters of a module stay, and where there are others of more dimensions so do vectors, whose stride few kernels
    ask for. Whole numbers in one dimension are mostly tables; they stay too.
    """
    deepest = max((len(spec.shape) for value in call.args for spec in value.tensors), default=0)

    def tensor(spec: TensorSpec) -> TensorSpec:
        vector = len(spec.shape) < 2 and (spec.dtype not in FLOATS or (name == "strided" and deepest > 1))
        if vector or spec.strides or spec.parameter or math.prod(spec.shape) < 2:
            return spec
        strides, offset = _layout(spec.shape, name)
        return spec.model_copy(update={"strides": strides, "offset": offset})

    changed = _changed(call, tensor, lambda number: number, arguments_only=True)
    return None if changed == call else changed


def _layout(shape: tuple[int, ...], name: Name) -> tuple[tuple[int, ...], int]:
    if name == "offset":
        return (), FAR
    step = 2 if name == "strided" else 1
    found: list[int] = []
    for place, size in enumerate(reversed(shape)):
        found.append(step)
        step = step * size + (PADDING if name == "padded" and place == 0 else 0)
    return (tuple(reversed(found)), NEAR) if name == "strided" or len(shape) > 1 else ((), NEAR)


# -- walking through a call ------------------------------------------------------------------------------------------


def _changed(
    call: CallSpec,
    tensor: Callable[[TensorSpec], TensorSpec],
    number: Callable[[int], int],
    *,
    arguments_only: bool = False,
) -> CallSpec:
    """The call with every tensor and every whole number changed."""

    def value(one: Value) -> Value:
        update: dict[str, Any] = {"items": tuple(map(value, one.items))}
        if one.tensor is not None:
            update["tensor"] = tensor(one.tensor)
        if one.kind == "int":
            update["number"] = number(one.number)
        return one.model_copy(update=update)

    update: dict[str, Any] = {
        "args": tuple(map(value, call.args)),
        "kwargs": {name: value(one) for name, one in call.kwargs.items()},
    }
    if not arguments_only:
        update |= {
            "made_with": tuple(map(value, call.made_with)),
            "made_with_named": {name: value(one) for name, one in call.made_with_named.items()},
            "state": tuple(one.model_copy(update={"tensor": tensor(one.tensor)}) for one in call.state),
            "upstream": tuple(one.model_copy(update={"tensor": tensor(one.tensor)}) for one in call.upstream),
        }
    return call.model_copy(update=update)


def _bytes(call: CallSpec) -> int:
    tensors = [*call.tensors, *(one.tensor for one in call.upstream)]
    return sum(expected_bytes(tensor.drawn_shape, tensor.dtype) for tensor in tensors)
