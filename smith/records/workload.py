"""A workload: calls into a package that its hidden tests make, so described that they can be made again with other
values."""

from __future__ import annotations

import hashlib
import math
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from smith.records.base import Document, Record, TaskId, to_json

FLOATS = ("float16", "bfloat16", "float32", "float64")
Dtype = Literal["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]
Size = Annotated[int, Field(ge=0, le=1 << 40)]
Share = Annotated[float, Field(ge=0, le=1)]
Dotted = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", max_length=300)]
MOST_VALUES = 2048


def _nothing(value: object) -> bool:
    return not value


class Fill(Record):
    """How the values of a tensor are drawn anew.

    ``normal``: mean and deviation, within low and high. ``uniform``: whole numbers from low to high. ``exact``: these
    values, since they are positions in something else. ``shuffled``: these values in another order. ``drawn``: from
    these values. ``share``: true with the probability ``mean``.
    """

    kind: Literal["normal", "uniform", "exact", "shuffled", "drawn", "share"]
    mean: float = Field(default=0.0, exclude_if=_nothing)
    std: float = Field(default=0.0, ge=0, exclude_if=_nothing)
    low: float = Field(default=0.0, exclude_if=_nothing)
    high: float = Field(default=0.0, exclude_if=_nothing)
    zeros: Share = Field(default=0.0, exclude_if=_nothing)
    """Share of the values that are exactly zero, beside the others."""
    nans: Share = Field(default=0.0, exclude_if=_nothing)
    infs: Share = Field(default=0.0, exclude_if=_nothing)
    minus_infs: Share = Field(default=0.0, exclude_if=_nothing)
    values: tuple[int, ...] = Field(default=(), max_length=MOST_VALUES, exclude_if=_nothing)


class TensorSpec(Record):
    """A tensor without its values."""

    shape: tuple[Size, ...] = Field(max_length=16)
    dtype: Dtype
    strides: tuple[Size, ...] = Field(default=(), max_length=16, exclude_if=_nothing)
    """Empty where it is contiguous."""
    offset: Size = Field(default=0, exclude_if=_nothing)
    """Elements before it in its storage, which then holds infinities (of whole numbers 0) around it and between its
    elements. Never recorded: it is how a call is varied."""
    device: Literal["cpu", "gpu"] = Field(default="cpu", exclude_if=lambda device: device == "cpu")
    grad: bool = Field(default=False, exclude_if=_nothing)
    parameter: bool = Field(default=False, exclude_if=_nothing)
    fill: Fill

    @model_validator(mode="after")
    def _whole(self) -> TensorSpec:
        if self.strides and len(self.strides) != len(self.shape):
            raise ValueError("a stride for each dimension, or none")
        if self.fill.kind in ("exact", "shuffled") and len(self.fill.values) != math.prod(self.drawn_shape):
            raise ValueError("a value for each element")
        if self.fill.kind == "drawn" and not self.fill.values:
            raise ValueError("values to draw from")
        if self.fill.low > self.fill.high:
            raise ValueError("low is above high")
        if (self.dtype in FLOATS) is not (self.fill.kind == "normal"):
            raise ValueError(f"{self.fill.kind} does not fill {self.dtype}")
        return self

    @property
    def drawn_shape(self) -> tuple[int, ...]:
        """Its shape where broadcast dimensions have one value only."""
        if not self.strides:
            return self.shape
        return tuple(1 if stride == 0 and size else size for size, stride in zip(self.shape, self.strides, strict=True))

    def __str__(self) -> str:
        marks = ("~" if self.strides else "") + (f"+{self.offset}" if self.offset else "") + ("*" if self.grad else "")
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]{marks}"


class Value(Record):
    """An argument. ``same`` is the tensor with that number, from 0, in the order of the call."""

    kind: Literal[
        "tensor", "same", "none", "bool", "int", "float", "str", "dtype", "device", "list", "tuple", "size", "dict",
        "slice",
    ]  # fmt: skip
    tensor: TensorSpec | None = Field(default=None, exclude_if=_nothing)
    number: int = Field(default=0, exclude_if=_nothing)
    text: str = Field(default="", max_length=200, exclude_if=_nothing)
    """Of a float its ``repr``, of a dtype its name."""
    keys: tuple[str, ...] = Field(default=(), exclude_if=_nothing)
    items: tuple[Value, ...] = Field(default=(), max_length=256, exclude_if=_nothing)

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Its tensors, in their order."""
        return tuple(_tensors(self))

    def __str__(self) -> str:
        match self.kind:
            case "tensor":
                return str(self.tensor)
            case "none":
                return "None"
            case "bool":
                return str(bool(self.number))
            case "int":
                return str(self.number)
            case "same":
                return f"tensor {self.number}"
            case "str":
                return repr(self.text)
            case "dict":
                return f"{{{', '.join(f'{k}: {v}' for k, v in zip(self.keys, self.items, strict=False))}}}"
            case "list" | "tuple" | "size" | "slice":
                inner = ", ".join(map(str, self.items))
                return {"list": f"[{inner}]", "slice": f"slice({inner})"}.get(self.kind, f"({inner})")
        return self.text


class State(Record):
    """A parameter or buffer of a module."""

    name: str = Field(max_length=300)
    tensor: TensorSpec


class Upstream(Record):
    """A gradient that came back to an output, by its number among the tensors of the result."""

    output: int = Field(ge=0, le=256)
    tensor: TensorSpec


class CallSpec(Record):
    """What is needed to make a call again. Nothing in it says what comes out."""

    kind: Literal["function", "autograd", "module"]
    entry: Dotted
    module: Dotted
    """The module to import; the rest of ``entry`` are attributes."""
    args: tuple[Value, ...] = Field(default=(), max_length=256)
    kwargs: dict[str, Value] = Field(default={}, exclude_if=_nothing)
    made_with: tuple[Value, ...] = Field(default=(), max_length=256, exclude_if=_nothing)
    """Of a module: the arguments that it was made with."""
    made_with_named: dict[str, Value] = Field(default={}, exclude_if=_nothing)
    state: tuple[State, ...] = Field(default=(), max_length=256, exclude_if=_nothing)
    training: bool = Field(default=True, exclude_if=bool)
    no_grad: bool = Field(default=False, exclude_if=_nothing)
    upstream: tuple[Upstream, ...] = Field(default=(), max_length=256, exclude_if=_nothing)
    """Empty where no backward followed."""

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """All tensors of the call in their order: state, then arguments, then named ones by name."""
        found = [one.tensor for one in self.state]
        for value in (*self.args, *(value for _, value in sorted(self.kwargs.items()))):
            found += _tensors(value)
        return tuple(found)

    @property
    def signature(self) -> str:
        """Entry, shapes and everything else but the distributions, for telling calls apart."""
        return hashlib.sha256(to_json(_without_fills(self.model_dump(mode="json")))).hexdigest()[:16]

    def __str__(self) -> str:
        words = [*map(str, self.args), *(f"{name}={value}" for name, value in self.kwargs.items())]
        back = ", then backward" if self.upstream else ""
        made = ", ".join(
            [*map(str, self.made_with), *(f"{name}={value}" for name, value in self.made_with_named.items())]
        )
        return f"{self.entry}{f'({made})' if self.kind == 'module' else ''}({', '.join(words)}){back}"


class RecordedCall(Record):
    """A call as a test made it."""

    call: CallSpec
    test: str
    seconds: float
    launches: int = 0
    """Of changed kernels in the call itself."""


class Call(Record):
    """A call of the workload, with what replaying it on reference and base showed."""

    call: CallSpec
    test: str = ""
    """The first test that made it."""
    seconds: float
    """Of one replay on the reference."""
    errors: dict[str, float] = {}
    """By result, how far the reference moves when its inputs are rounded otherwise, or half precision is computed in
    single: what the tolerance is made from, as ``smith.oracle.compare`` says."""
    base: str = ""
    """In what the base differs from the reference; empty where it does not."""


class LeftOut(Record):
    """Calls that are no part of the workload, and why: a typed code."""

    entry: str
    reason: str
    detail: str = ""
    count: int = 1


class Workload(Document):
    """The recorded calls of one task on one device. Named in the receipt by the SHA-256 of its bytes."""

    task: TaskId
    tree: str
    device: str
    counted: bool
    """Whether launches are counted on this device: else any call into the package may be among the calls."""
    calls: tuple[Call, ...]
    left_out: tuple[LeftOut, ...] = ()
    smith: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes."""
        return hashlib.sha256(self.dumps()).hexdigest()


class WorkloadNote(Record):
    """What a receipt says of its workload."""

    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    calls: int
    telling: int
    """Calls in which the base differs from the reference."""
    left_out: int
    signatures: tuple[str, ...] = ()

    @classmethod
    def of(cls, workload: Workload) -> WorkloadNote:
        return cls(
            sha256=workload.digest,
            calls=len(workload.calls),
            telling=sum(1 for one in workload.calls if one.base),
            left_out=sum(one.count for one in workload.left_out),
            signatures=tuple(sorted(one.call.signature for one in workload.calls)),
        )

    def adds_to(self, other: WorkloadNote | None) -> bool:
        """Whether it holds other calls than ``other``; distributions of unseeded tests differ from run to run."""
        return other is None or self.signatures != other.signatures

    def __str__(self) -> str:
        return f"workload: {self.calls} calls, in {self.telling} of them the base differs; {self.left_out} left out"


class OracleReport(Record):
    """What the sealed oracle said of one submission."""

    seed: int
    calls: int
    agreed: int
    skipped: tuple[str, ...] = Field(default=(), exclude_if=_nothing)
    """Calls that the reference itself could not be compared in, this time."""
    differences: tuple[str, ...] = Field(default=(), exclude_if=_nothing)
    """By call, the first difference."""
    seconds: float = 0.0


def _tensors(value: Value) -> list[TensorSpec]:
    found = [value.tensor] if value.tensor is not None else []
    for item in value.items:
        found += _tensors(item)
    return found


def _without_fills(data: object) -> object:
    if isinstance(data, dict):
        return {
            key: {"kind": inner.get("kind"), "values": inner.get("values") if inner.get("kind") == "exact" else None}
            if key == "fill" and isinstance(inner, dict)
            else _without_fills(inner)
            for key, inner in data.items()
        }
    if isinstance(data, list):
        return [_without_fills(one) for one in data]
    return data
