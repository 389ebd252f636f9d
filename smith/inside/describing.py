"""Arguments of a call as data from which they can be made again, with other values."""

from __future__ import annotations

import itertools
import math
from typing import Any

DTYPES = (
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool",
)  # fmt: skip
MOST_VALUES = 2048
"""Whole numbers of one tensor that are kept."""
MOST_BYTES = 16 << 20
"""Bytes of the tensors of one call."""
MOST_ITEMS = 256
MOST_DEPTH = 6
POOL = 256
ZEROS = 0.05
"""A larger share of exact zeros is a pattern."""

Description = dict[str, Any]


class Unrebuildable(Exception):
    """An argument that no other process could make. ``code`` is typed, the text is for people."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail[:200]


class Describer:
    """Describes the arguments of one call; a tensor that comes twice is described once."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.tensors: list[Any] = []
        self._bytes = 0

    def describe(self, value: Any, depth: int = 0) -> Description:
        """One argument. Raises :class:`Unrebuildable`."""
        torch = self._torch
        kind = type(value)
        if depth > MOST_DEPTH:
            raise Unrebuildable("argument", "containers are nested too deep")
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if value is None:
            return {"kind": "none"}
        if kind is bool or kind is int:
            if abs(int(value)) >> 63:
                raise Unrebuildable("argument", "a whole number of more than 64 bits")
            return {"kind": "bool" if kind is bool else "int", "number": int(value)}
        if kind is float:
            return {"kind": "float", "text": repr(value)}
        if kind is str:
            if len(value) > 200 or not value.isprintable():
                raise Unrebuildable("argument", "a long text")
            return {"kind": "str", "text": value}
        if isinstance(value, torch.dtype):
            return {"kind": "dtype", "text": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"kind": "device", "text": "cpu" if value.type == "cpu" else "gpu"}
        if kind is slice:
            return self._items("slice", (value.start, value.stop, value.step), depth)
        if kind in (list, tuple, torch.Size):
            return self._items("list" if kind is list else "tuple" if kind is tuple else "size", value, depth)
        if kind is dict and all(type(key) is str for key in value):
            return {**self._items("dict", tuple(value.values()), depth), "keys": list(value)}
        code = "closure" if callable(value) else "open_object"
        raise Unrebuildable(code, f"{kind.__module__}.{kind.__qualname__}")

    def _items(self, kind: str, values: Any, depth: int) -> Description:
        if len(values) > MOST_ITEMS:
            raise Unrebuildable("argument", f"a container of {len(values)} items")
        return {"kind": kind, "items": [self.describe(one, depth + 1) for one in values]}

    def _tensor(self, value: Any) -> Description:
        for number, known in enumerate(self.tensors):
            if known is value:
                return {"kind": "same", "number": number}
        spec = self.tensor(value)
        self.tensors.append(value)
        return {"kind": "tensor", "tensor": spec}

    def tensor(self, value: Any) -> Description:
        """A tensor without its values. Raises :class:`Unrebuildable`."""
        torch = self._torch
        dtype = str(value.dtype).removeprefix("torch.")
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
            raise Unrebuildable("tensor_kind", f"{type(value).__qualname__} of layout {value.layout}")
        if dtype not in DTYPES:
            raise Unrebuildable("dtype", dtype)
        self._bytes += value.numel() * value.element_size()
        if self._bytes > MOST_BYTES:
            raise Unrebuildable("too_large", f"more than {MOST_BYTES >> 20} MiB of tensors")
        plain = value.detach()
        spec: Description = {"shape": list(value.shape), "dtype": dtype}
        if not value.is_contiguous():
            if _overlaps(value):
                raise Unrebuildable("overlapping", "a tensor whose elements share memory")
            spec["strides"] = list(value.stride())
            once = [1 if not stride and n else n for n, stride in zip(value.shape, value.stride(), strict=True)]
            plain = plain.as_strided(once, value.stride())
        spec["fill"] = fill_of(torch, plain, dtype)
        if value.device.type != "cpu":
            spec["device"] = "gpu"
        if value.requires_grad:
            spec["grad"] = True
        if isinstance(value, torch.nn.Parameter):
            spec["parameter"] = True
        return spec


def _overlaps(value: Any) -> bool:
    """Whether elements share memory otherwise than by a dimension of stride 0."""
    reach = 0
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size <= 1 or stride == 0:
            continue
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def fill_of(torch: Any, value: Any, dtype: str) -> Description:
    """How values like these are drawn."""
    count = value.numel()
    if dtype == "bool":
        return {"kind": "share", "mean": float(value.float().mean()) if count else 0.0}
    if dtype in ("float16", "bfloat16", "float32", "float64"):
        fill = _floats(torch, value.double().flatten())
        if not all(math.isfinite(number) for number in fill.values() if isinstance(number, float)):
            raise Unrebuildable("odd", "values whose mean or deviation is no number")
        return fill
    return _whole(torch, value.long(), dtype)


def _floats(torch: Any, flat: Any) -> Description:
    count = flat.numel()
    fill: Description = {"kind": "normal"}
    if not count:
        return fill
    finite = flat[torch.isfinite(flat)]
    for name, some in (("nans", flat.isnan()), ("infs", flat == math.inf), ("minus_infs", flat == -math.inf)):
        share = float(some.sum()) / count
        if share:
            fill[name] = share
    zeros = float((finite == 0).sum()) / count
    if zeros > ZEROS and zeros < 1:
        fill["zeros"] = zeros
        finite = finite[finite != 0]
    if finite.numel():
        fill["mean"], fill["low"], fill["high"] = (float(one) for one in (finite.mean(), finite.min(), finite.max()))
        fill["std"] = float(finite.std(correction=0)) if finite.numel() > 1 else abs(fill["mean"]) / 2
        if finite.numel() == 1:
            # One value says nothing of a range; it keeps its sign and its size.
            fill["low"], fill["high"] = sorted((fill["mean"] / 2, fill["mean"] * 2))
    return fill


def _whole(torch: Any, value: Any, dtype: str) -> Description:
    flat = value.flatten()
    count = flat.numel()
    if not count:
        return {"kind": "exact"}
    low, high = int(flat.min()), int(flat.max())
    if dtype in ("int8", "uint8"):
        return {"kind": "uniform", "low": low, "high": high}
    if count <= MOST_VALUES:
        # Boundaries, positions and tables of chunks are in order; what they point into is not.
        ordered = count == 1 or bool((flat[1:] >= flat[:-1]).all()) or _rows_in_order(value)
        return {"kind": "exact" if ordered else "shuffled", "values": flat.tolist()}
    step = max(1, count // POOL)
    pool = sorted({*flat[::step].tolist()[:POOL], low, high})
    return {"kind": "drawn", "values": pool}


def _rows_in_order(value: Any) -> bool:
    """A table such as (sequence, chunk within it), its rows in order."""
    if value.dim() != 2 or not 2 <= value.shape[1] <= 4:
        return False
    rows = value.tolist()
    return all(a <= b for a, b in itertools.pairwise(rows))
