"""One launch: the memory that its tensor arguments reach, and which program is running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from triton.runtime import interpreter as triton_interpreter

from . import poison
from .order import Order

_I: Any = triton_interpreter
_DESCRIPTOR: Any = getattr(_I, "TensorDescriptor", ())  # none in Triton 3.3


class Allocation:
    """The storage of one or more arguments."""

    def __init__(self, start: int, size: int) -> None:
        self.start, self.size = start, size
        self.content = poison.memory(start, size)
        self.fresh = poison.holds(start, size)
        """Whether some of it may never have been written."""
        self.writers: dict[int, Any] = {}
        """By element size: for each element the epoch in which it was last stored in this launch, 0 for never."""

    def writers_of(self, size: int) -> Any:
        """The epochs of elements of ``size`` bytes."""
        if size not in self.writers:
            self.writers[size] = np.zeros(self.size // size, dtype=np.int32)
        return self.writers[size]


class Argument:
    """A tensor that was passed: where it points, and the bytes of its allocation that it is a view of."""

    def __init__(self, name: str, tensor: Any, allocation: Allocation) -> None:
        self.name, self.allocation = name, allocation
        self.address = int(tensor.data_ptr())
        self.itemsize = int(tensor.element_size())
        elements = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
        self.low = self.address - allocation.start
        self.high = self.low + (elements + 1) * self.itemsize if tensor.numel() else self.low
        self.partial = bool(tensor.numel()) and (self.low, self.high) != (0, allocation.size)
        """Whether there is memory of the allocation that the view does not span."""


class Launch:
    """What is known while one grid runs."""

    def __init__(self, kernel: str, passed: Iterator[tuple[str, Any]]) -> None:
        self.kernel = kernel
        self.program = (0, 0, 0)
        self.order = Order()
        self.arguments: dict[int, Argument] = {}
        """By address; arguments that point to one place share an entry and have a joint name."""
        self.allocations: dict[int, Allocation] = {}
        self.unknown = False
        """Whether there may be pointers into memory that no argument shows."""
        for name, value in passed:
            self._add(name, value)

    def _add(self, name: str, value: Any) -> None:
        tensor = _I._unwrap_tensor(value)
        try:
            storage = tensor.untyped_storage()
            start, size = int(storage.data_ptr()), int(storage.nbytes())
            if start not in self.allocations or self.allocations[start].size < size:
                self.allocations[start] = Allocation(start, size)
            argument = Argument(name, tensor, self.allocations[start])
        except (AttributeError, RuntimeError, TypeError):
            self.unknown = True
            return
        known = self.arguments.get(argument.address)
        if known is not None:
            argument.name = f"{known.name}/{name}"
            argument.low, argument.high = min(known.low, argument.low), max(known.high, argument.high)
            argument.partial = known.partial and argument.partial
        self.arguments[argument.address] = argument

    def begin(self, program: tuple[int, int, int]) -> None:
        """The next program of the grid starts."""
        self.program = program
        self.order.begin(program)


current: Launch | None = None
"""The launch that is running."""


def _pointers(names: list[str], args: Any, kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name and value of everything that was passed and has an address, looking into tuples and descriptors."""
    waiting = [*zip(names, args, strict=False), *((name, value) for name, value in kwargs.items() if name in names)]
    while waiting:
        name, value = waiting.pop(0)
        if isinstance(value, tuple):
            waiting += [(f"{name}[{index}]", part) for index, part in enumerate(value)]
        elif isinstance(value, _DESCRIPTOR):
            waiting.append((name, value.base))
        elif hasattr(value, "data_ptr"):
            yield name, value


def install() -> None:
    """Patch the interpreter's grid call and the start of each program. Comes last: arguments are seen as passed."""
    executor, builder = _I.GridExecutor, _I.InterpreterBuilder
    launch, set_grid_idx = executor.__call__, builder.set_grid_idx

    def watched_launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        global current
        if kwargs.get("warmup"):
            return launch(self, *args, **kwargs)
        kernel = str(getattr(self.fn, "smith_key", None) or getattr(self.fn, "__qualname__", "?"))
        before, current = current, Launch(kernel, _pointers(list(self.arg_names), args, kwargs))
        try:
            return launch(self, *args, **kwargs)
        finally:
            current = before

    def watched_set_grid_idx(self: Any, x: int, y: int, z: int) -> Any:
        if current is not None:
            current.begin((x, y, z))
        return set_grid_idx(self, x, y, z)

    executor.__call__, builder.set_grid_idx = watched_launch, watched_set_grid_idx
