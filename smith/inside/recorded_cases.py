"""Recorded calls as cases of a timing workload: inputs drawn by torch's default generator, which the timer seeds."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

from smith.inside.recording import tensors_of
from smith.inside.replay import Replayed, drawn_shape

Case = tuple[str, Callable[[], Callable[[], object]]]


def cases_of(calls: list[tuple[str, dict[str, Any]]]) -> list[Case]:
    """A case for each call, by name; ``make()`` builds its inputs and gives one call, with its backward if it has
    one."""
    return [(name, functools.partial(_make, call)) for name, call in calls]


def _make(call: dict[str, Any]) -> Callable[[], object]:
    torch = importlib.import_module("torch")
    drawn = _Drawn(torch, call)
    target, args, kwargs = drawn.prepared()
    upstream = [(one["output"], drawn.draw(one["tensor"])) for one in call.get("upstream", ())]
    leaves = [tensor for tensor in drawn.tensors if tensor.requires_grad]
    quiet = bool(call.get("no_grad", False))

    def once() -> object:
        with torch.set_grad_enabled(not quiet):
            result = target(*args, **kwargs)
        if isinstance(result, torch.Tensor) and not upstream:
            return result
        outputs = tensors_of(torch, result)
        if not upstream or not leaves:
            return outputs
        some, grads = [outputs[n] for n, _ in upstream], [grad for _, grad in upstream]
        found = torch.autograd.grad(some, leaves, grads, allow_unused=True)
        return [*outputs, *(grad for grad in found if grad is not None)]

    return once


class _Drawn(Replayed):
    """A call whose tensors are drawn here, from what is known of their values."""

    def _read(self, spec: dict[str, Any]) -> Any:
        return self.draw(spec)

    def draw(self, spec: dict[str, Any]) -> Any:
        """Values of one tensor."""
        torch, shape, fill = self._torch, drawn_shape(spec), spec["fill"]
        count = math.prod(shape)
        return self._values(fill, count).to(getattr(torch, spec["dtype"])).reshape(shape)

    def _values(self, fill: dict[str, Any], count: int) -> Any:
        torch, values = self._torch, fill.get("values", [])
        low, high = fill.get("low", 0.0), fill.get("high", 0.0)
        match fill["kind"]:
            case "share":
                return torch.rand(count) < fill.get("mean", 0.0)
            case "uniform":
                return torch.randint(int(low), int(high) + 1, (count,))
            case "exact":
                return torch.tensor(values)
            case "shuffled":
                return torch.tensor(values)[torch.randperm(count)]
            case "drawn":
                return torch.tensor(values)[torch.randint(len(values), (count,))]
        numbers = fill.get("mean", 0.0) + fill.get("std", 0.0) * torch.randn(count, dtype=torch.float64)
        if low < high:
            outside = (numbers < low) | (numbers > high)
            numbers = torch.where(outside, low + (high - low) * torch.rand(count, dtype=torch.float64), numbers)
        kinds, edge = torch.rand(count), 0.0
        for name, value in (("zeros", 0.0), ("nans", math.nan), ("infs", math.inf), ("minus_infs", -math.inf)):
            share = fill.get(name, 0.0)
            numbers = torch.where((kinds >= edge) & (kinds < edge + share), value, numbers)
            edge += share
        return numbers
