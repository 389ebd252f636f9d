"""Kernels that are broken on purpose: every launch runs, and then all tensors that it has changed are spoiled.

A test that passes all the same has not been decided by what its kernels compute. Inputs stay as they are, so that a
result that comes from elsewhere is still right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from triton.runtime import interpreter as triton_interpreter

_I: Any = triton_interpreter


def install() -> None:
    """Break every launch of this process from now on, but those of Triton's own library."""
    executor = _I.GridExecutor
    launch = executor.__call__

    def broken(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("warmup") or getattr(self.fn, "smith_key", None) is None:
            return launch(self, *args, **kwargs)
        given = [(each, each.clone()) for each in _tensors([*args, *kwargs.values()])]
        result = launch(self, *args, **kwargs)
        for each, before in given:
            if not torch.equal(_bits(each), _bits(before)):
                _spoil(each)
        return result

    executor.__call__ = broken


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    """The tensors among arguments, also in tuples and behind descriptors."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _tensors(value)
        else:
            inner = value if isinstance(value, torch.Tensor) else getattr(value, "base", None)
            if isinstance(inner, torch.Tensor) and inner.numel():
                yield inner.detach()


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes: not-a-number equals itself."""
    return tensor.contiguous().view(-1).view(torch.uint8)


def _spoil(tensor: torch.Tensor) -> None:
    """Not-a-number where there is one; other values turned about, so that sizes and indices stay small."""
    with torch.no_grad():
        try:
            if tensor.dtype == torch.bool:
                tensor.logical_not_()
            elif tensor.is_floating_point() or tensor.is_complex():
                tensor.fill_(float("nan"))
            else:
                tensor.copy_(~tensor)
        except RuntimeError:
            # A tensor that repeats one element in memory, or of a type without such a value, stays as it is.
            return
