"""``torch.cuda`` and ``torch.accelerator`` answering for the declared target.

Queries get the profile's answer; streams, events and memory statistics get harmless ones; what would need a device to
mean anything (graphs, peer access) is refused.
"""

from __future__ import annotations

import time
import types
from typing import Any

import torch

from .refusals import refuse
from .target import Target

_C: Any = torch.cuda
_T: Any = torch


class Stream:
    """A stream on which everything has happened already."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0
    device_type = 1

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = torch.device("cuda", 0)
        self.priority = priority

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def wait_stream(self, stream: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def record_event(self, event: Any = None) -> Any:
        event = Event() if event is None else event
        event.record(self)
        return event


class Event:
    """An event that knows when it was recorded by the wall clock."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, **_: Any
    ) -> None:
        self._time = time.perf_counter()

    def record(self, stream: Any = None) -> None:
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end_event: Event) -> float:
        return (end_event._time - self._time) * 1e3


class _Context:
    """``torch.cuda.device(...)`` and ``torch.cuda.stream(...)``: enter and leave."""

    def __init__(self, value: Any = None) -> None:
        self.idx = 0
        self.stream = value

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


def _always(value: Any) -> Any:
    """A new function that answers ``value``: torch._dynamo refuses one object under two names."""
    return lambda *_, **__: value


def properties(target: Target) -> Any:
    """What ``torch.cuda.get_device_properties`` answers."""
    return types.SimpleNamespace(
        name=target.name,
        major=target.capability[0],
        minor=target.capability[1],
        total_memory=target.total_memory,
        multi_processor_count=target.processors,
        warp_size=target.warp_size,
        gcnArchName=target.gcn_arch_name,
        shared_memory_per_block=min(target.shared_memory, 65536 if target.backend == "hip" else 49152),
        shared_memory_per_block_optin=target.shared_memory,
        shared_memory_per_multiprocessor=target.shared_memory,
        L2_cache_size=target.l2_cache,
        regs_per_multiprocessor=target.registers,
        max_threads_per_multi_processor=target.max_threads,
        max_threads_per_block=1024,
        is_integrated=0,
        is_multi_gpu_board=0,
        uuid="00000000-0000-0000-0000-000000000000",
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
    )


def _patch_queries(target: Target) -> None:
    described = properties(target)
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "_is_in_bad_fork": False,
        "get_device_properties": described,
        "get_device_capability": target.capability,
        "get_device_name": target.name,
        "get_arch_list": [target.arch],
        "is_bf16_supported": True,
        "is_tf32_supported": target.backend == "cuda",
        "is_current_stream_capturing": False,
        "can_device_access_peer": False,
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_reserved": 0,
        "memory_stats": {},
        "memory_summary": "",
        "memory_snapshot": [],
        "utilization": 0,
        "mem_get_info": (target.total_memory, target.total_memory),
        "get_sync_debug_mode": 0,
        "get_allocator_backend": "native",
    }
    for name, value in answers.items():
        setattr(_C, name, _always(value))
    _C.memory.mem_get_info = _C.mem_get_info


def _patch_actions() -> None:
    for name in (
        "init",
        "_lazy_init",
        "synchronize",
        "empty_cache",
        "set_device",
        "set_stream",
        "ipc_collect",
        "reset_peak_memory_stats",
        "reset_max_memory_allocated",
        "reset_accumulated_memory_stats",
        "reset_max_memory_cached",
        "set_sync_debug_mode",
        "set_per_process_memory_fraction",
    ):
        setattr(_C, name, _always(None))
    for name in ("empty_cache", "reset_peak_memory_stats", "memory_allocated", "max_memory_allocated"):
        setattr(_C.memory, name, getattr(_C, name))
    for name in ("device", "device_of", "stream"):
        setattr(_C, name, type(name, (_Context,), {}))
    for owner in (_C, _T):
        owner.Stream = type("Stream", (Stream,), {})
        owner.Event = type("Event", (Event,), {})
    _C.ExternalStream = type("ExternalStream", (Stream,), {})
    current = Stream()
    for name in ("current_stream", "default_stream"):
        setattr(_C, name, _always(current))
    for name in ("CUDAGraph", "graph"):  # classes: they stand in annotations
        setattr(_C, name, type(name, (), {"__init__": refuse("CUDA graphs")}))
    _C.make_graphed_callables = refuse("CUDA graphs")
    for name in ("range_push", "range_pop", "mark"):
        setattr(_C.nvtx, name, _always(None))
    _C.nvtx.range = type("range", (_Context,), {})


def _patch_random() -> None:
    """One generator, the CPU's, stands for the host's and the device's."""

    for name in ("manual_seed", "manual_seed_all"):
        seed = lambda seed: torch.default_generator.manual_seed(int(seed)) and None  # noqa: E731
        setattr(_C, name, seed)
        setattr(_C.random, name, seed)
    _C.seed, _C.seed_all = _always(None), _always(None)
    _C.initial_seed = lambda: torch.default_generator.initial_seed()
    _C.get_rng_state = lambda device="cuda": torch.get_rng_state()
    _C.set_rng_state = lambda state, device="cuda": torch.set_rng_state(state)
    _C.get_rng_state_all = lambda: [torch.get_rng_state()]
    _C.set_rng_state_all = lambda states: torch.set_rng_state(states[0])
    _C.default_generators = (torch.default_generator,)


def _patch_accelerator() -> None:
    accelerator: Any = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    for name, value in (
        ("current_accelerator", torch.device("cuda")),
        ("is_available", True),
        ("device_count", 1),
        ("current_device_index", 0),
        ("current_device_idx", 0),
    ):
        setattr(accelerator, name, _always(value))
    for name in (
        "synchronize",
        "set_device_index",
        "set_device_idx",
        "set_stream",
        "empty_cache",
        "reset_peak_memory_stats",
    ):
        setattr(accelerator, name, _always(None))
    accelerator.current_stream = _always(_C.current_stream())


def _patch_versions(target: Target) -> None:
    version: Any = torch.version
    version.hip = target.toolkit if target.backend == "hip" else None
    version.cuda = target.toolkit if target.backend == "cuda" else None
    _T.compile = _eager


def _eager(model: Any = None, *_: Any, **__: Any) -> Any:
    """``torch.compile``, as a function or decorator, without compiling: what it computes is the same."""
    return model if model is not None else lambda function: function


def _patch_cpu_module() -> None:
    """A repository that takes ``torch.cpu`` for its device module asks it for what only ``torch.cuda`` has."""
    cpu: Any = torch.cpu
    for name in (
        "device",
        "get_device_properties",
        "get_device_capability",
        "get_device_name",
        "empty_cache",
        "memory_allocated",
        "max_memory_allocated",
        "reset_peak_memory_stats",
        "manual_seed",
        "manual_seed_all",
    ):
        if not hasattr(cpu, name):
            answer = getattr(_C, name)
            setattr(cpu, name, type(name, (answer,), {}) if isinstance(answer, type) else _forward(answer))


def _forward(function: Any) -> Any:
    return lambda *args, **kwargs: function(*args, **kwargs)


def install(target: Target) -> None:
    """Patch ``torch.cuda``, ``torch.accelerator`` and ``torch.version`` for ``target``."""
    _patch_queries(target)
    _patch_actions()
    _patch_random()
    _patch_accelerator()
    _patch_versions(target)
    _patch_cpu_module()
