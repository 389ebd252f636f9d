"""Loads, stores and atomics, each checked before it is carried out.

Lanes that are out of bounds are reported and masked off: a wild access could end the process, or change memory that
belongs to something else and so hide what comes after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter

from . import launched, poison, report
from .launched import Allocation, Argument, Launch
from .order import MOST_LANES
from .pointers import FOREIGN, origin_of

_I: Any = triton_interpreter
_TL: Any = tl

Array = Any


@dataclass(frozen=True)
class Part:
    """The lanes of an access that fall into one allocation."""

    allocation: Allocation
    offsets: Array
    """In bytes from the allocation's start, for every lane; of meaning only where ``lanes`` is set."""
    lanes: Array


class Access:
    """One load, store or atomic of a block. Each of its ``pointers`` in ``mask`` (None: all) touches ``size`` bytes."""

    def __init__(self, launch: Launch, operation: str, pointers: Any, mask: Any, size: int) -> None:
        self.launch, self.operation, self.size = launch, operation, size
        self.origin = origin_of(pointers)
        self.addresses = np.asarray(pointers.data).astype(np.uint64, copy=False)
        lanes = True if mask is None else mask if isinstance(mask, np.ndarray) else mask.data
        self.lanes = np.broadcast_to(np.asarray(lanes, dtype=bool), self.addresses.shape)
        self.parts: list[Part] = []
        self.wild = self._divide()

    def _divide(self) -> Array:
        """Sort the lanes into allocations; those that are in none and should be are returned."""
        if isinstance(self.origin, Argument):
            part = self._inside(self.origin.allocation)
            self.parts.append(part)
            return self.lanes & ~part.lanes
        found = np.zeros(self.addresses.shape, dtype=bool)
        for allocation in self.launch.allocations.values():
            part = self._inside(allocation)
            if part.lanes.any():
                self.parts.append(part)
                found |= part.lanes
        silent = self.origin is FOREIGN or self.launch.unknown
        return np.zeros_like(found) if silent else self.lanes & ~found

    def _inside(self, allocation: Allocation) -> Part:
        offsets = self.addresses - np.uint64(allocation.start)  # below the start it wraps to something huge
        room = allocation.size - self.size
        within = offsets <= np.uint64(room) if room >= 0 else np.zeros(offsets.shape, dtype=bool)
        return Part(allocation, offsets, self.lanes & within)

    def check_bounds(self) -> Array | None:
        """Report lanes that are out of bounds. What is then left of the mask; None where it stays as it is."""
        kind = "out_of_bounds_read" if self.operation == "load" else "out_of_bounds_write"
        if self.wild.any():
            self._report(kind, self.wild)
            return self.lanes & ~self.wild
        argument = self.origin
        if isinstance(argument, Argument) and argument.partial:
            (part,) = self.parts
            outside = part.offsets < np.uint64(argument.low)
            outside |= part.offsets + np.uint64(self.size) > np.uint64(argument.high)
            outside &= part.lanes
            if outside.any():
                self._report("outside_view", outside)
        return None

    def check_written(self, floating: bool) -> None:
        """Report lanes whose memory nobody has written."""
        for part in self.parts:
            allocation = part.allocation
            if allocation.fresh:
                bare = poison.unwritten(allocation.content, allocation.start, part.offsets, self.size, floating)
                bare &= part.lanes
                if bare.any():
                    self._report("uninitialised_read", bare, part)

    def check_writers(self, values: Array) -> None:
        """Report lanes that another program has stored to in this launch, and remember this one."""
        order = self.launch.order
        for part in self.parts:
            writers = part.allocation.writers_of(self.size)
            index = (part.offsets // np.uint64(self.size))[part.lanes]
            before = writers[index]
            taken = (before > 0) & (before < order.first)
            if taken.any():
                self._compare(part, before, taken, np.broadcast_to(values, part.lanes.shape)[part.lanes])
            writers[index] = order.epoch

    def _compare(self, part: Part, before: Array, taken: Array, values: Array) -> None:
        """Tell a race from two programs that agree, lane by lane."""
        offsets = part.offsets[part.lanes].astype(np.int64)
        inner = np.arange(self.size)
        there = part.allocation.content[offsets[:, None] + inner]
        new = np.ascontiguousarray(values).view(np.uint8).reshape(len(offsets), self.size)
        differs = taken & (there != new).any(axis=1)
        for epoch in np.unique(before[differs]):
            if self.launch.order.ordered(int(epoch)):
                differs &= before != epoch
        kind, lanes = ("race", differs) if differs.any() else ("same_value_write", taken)
        if kind == "same_value_write" and (there != new)[taken].any():
            return  # different, and in order
        marked = np.zeros(part.lanes.shape, dtype=bool)
        marked[part.lanes] = lanes
        other = self.launch.order.program_of(int(before[lanes][0]))
        self._report(kind, marked, part, other)

    def _report(self, kind: str, lanes: Array, part: Part | None = None, other: Any = None) -> None:
        first = int(self.addresses[lanes].flat[0])
        argument = self.origin if isinstance(self.origin, Argument) else self._owner(part)
        report.add(
            kind,
            self.launch.kernel,
            self.operation,
            self.launch.program,
            argument=argument.name if argument is not None else "",
            offset=(first - argument.address) // argument.itemsize if argument is not None else None,
            lanes=int(lanes.sum()),
            other=other,
        )

    def _owner(self, part: Part | None) -> Argument | None:
        """An argument of the allocation that was hit, where the pointer's own origin is lost."""
        if part is None:
            return None
        owners = (a for a in self.launch.arguments.values() if a.allocation is part.allocation)
        return next(owners, None)


def _element(pointers: Any) -> tuple[int, bool]:
    """Bytes of what a pointer points to, and whether that is a float."""
    element = pointers.get_element_ty()
    return max(1, element.primitive_bitwidth // 8), bool(element.is_floating())


def _handle(mask: Array) -> Any:
    return _I.TensorHandle(mask, _TL.int1)


def _load(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_masked_load(self: Any, ptrs: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        launch = launched.current
        if launch is not None:
            size, floating = _element(ptrs)
            access = Access(launch, "load", ptrs, mask, size)
            left = access.check_bounds()
            access.check_written(floating)
            mask = mask if left is None else _handle(left)
            if named.get("is_volatile", rest[-1] if rest else False) is True:
                launch.order.volatile()
        return original(self, ptrs, mask, *rest, **named)

    return create_masked_load


_atomically = False
"""Whether a store is the inside of an atomic one."""


def _store(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        launch = launched.current
        if launch is not None:
            # As many bytes are written as the value has.
            access = Access(launch, "store", ptrs, mask, value.data.dtype.itemsize)
            left = access.check_bounds()
            if not _atomically:
                access.check_writers(value.data)
            mask = mask if left is None else _handle(left)
        return original(self, ptrs, value, mask, *rest, **named)

    return create_masked_store


def _atomic_store(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_atomic_store(self: Any, ptr: Any, *rest: Any) -> Any:
        global _atomically
        _atomically = True
        try:
            return original(self, ptr, *rest)
        finally:
            _atomically = False
            _pass(ptr, None)

    return create_atomic_store


def _pass(pointers: Any, lanes: Array | None) -> None:
    launch = launched.current
    addresses = np.asarray(pointers.data)
    if launch is not None and addresses.size <= MOST_LANES:
        launch.order.atomic([int(a) for a in (addresses if lanes is None else addresses[lanes]).flat])


def _atomic_rmw(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        launch = launched.current
        if launch is None:
            return original(self, op, ptr, val, mask, *rest)
        access = Access(launch, "atomic", ptr, mask, val.data.dtype.itemsize)
        left = access.check_bounds()
        if op != _I._ir.ATOMIC_OP.XCHG:
            access.check_written(_element(ptr)[1])
        result = original(self, op, ptr, val, mask if left is None else _handle(left), *rest)
        _pass(ptr, access.lanes)
        return result

    return create_atomic_rmw


def _atomic_cas(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_atomic_cas(self: Any, ptr: Any, cmp: Any, *rest: Any) -> Any:
        launch = launched.current
        if launch is None:
            return original(self, ptr, cmp, *rest)
        access = Access(launch, "atomic", ptr, None, cmp.data.dtype.itemsize)
        if access.check_bounds() is not None:
            return cmp  # it has no mask; done as if it had succeeded
        access.check_written(_element(ptr)[1])
        result = original(self, ptr, cmp, *rest)
        _pass(ptr, None)
        return result

    return create_atomic_cas


def install() -> None:
    """Patch the builder's operations on memory."""
    builder = _I.InterpreterBuilder
    builder.create_masked_load = _load(builder.create_masked_load)
    builder.create_masked_store = _store(builder.create_masked_store)
    builder.create_atomic_rmw = _atomic_rmw(builder.create_atomic_rmw)
    builder.create_atomic_cas = _atomic_cas(builder.create_atomic_cas)
    if hasattr(builder, "create_atomic_store"):
        builder.create_atomic_store = _atomic_store(builder.create_atomic_store)
