"""A Triton driver that states the declared target.

Without it: ``0 active drivers ([]). There should only be one.`` It launches nothing; the interpreter does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.testing
from triton.backends.compiler import GPUTarget

from .target import Target


class _Utils:
    """The low-level device queries that host code reaches through ``driver.active.utils``."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def get_device_properties(self, device: int = 0) -> dict[str, Any]:
        target = self._target
        return {
            "max_shared_mem": target.shared_memory,
            "max_num_regs": target.registers,
            "multiprocessor_count": target.processors,
            "sm_clock_rate": 2_100_000,
            "mem_clock_rate": 1_300_000,
            "mem_bus_width": 8192,
            "warpSize": target.warp_size,
            "arch": target.triton_arch,
        }


def measure_once(fn: Callable[[], Any], *_: Any, quantiles: Sequence[float] | None = None, **__: Any) -> Any:
    """Run ``fn`` once and answer with its wall time in ms, in the form ``do_bench`` would use.

    Stands in for every benchmark: a time taken in the interpreter means nothing, and hundreds of repetitions of it
    take hours.
    """
    start = time.perf_counter()
    fn()
    elapsed = (time.perf_counter() - start) * 1e3
    return [elapsed] * len(quantiles) if quantiles is not None else elapsed


class InterpreterDriver:
    """The active driver of an interpreter process (duck-typed: the base class differs between Triton versions)."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.utils = _Utils(target)
        self.get_device_capability = lambda *_: target.capability

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> Any:
        return GPUTarget(self._target.backend, self._target.triton_arch, self._target.warp_size)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_benchmarker(self) -> Any:
        return measure_once

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1, dtype=torch.int)

    def clear_cache(self, cache: Any) -> None:
        pass

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty


def install(target: Target) -> None:
    """Make the driver for ``target`` Triton's active one, and benchmarks one run long."""
    runtime: Any = triton.runtime
    runtime.driver.set_active(InterpreterDriver(target))
    if hasattr(runtime.driver, "_default"):
        runtime.driver._default = runtime.driver.active
    testing: Any = triton.testing
    testing.do_bench = measure_once
    testing.do_bench_cudagraph = measure_once
