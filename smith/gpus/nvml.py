"""NVIDIA GPUs through NVML, by the package ``nvidia-ml-py`` (the extra ``cuda``)."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smith.gpus.base import Gpu, Inventory, Occupant, Readings
from smith.gpus.nvidia_nodes import card_of, device_nodes


def load() -> Any | None:
    """The module ``pynvml``, or None where it is not installed."""
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


def inventory(root: Path, nvml: Any) -> Inventory:
    """All GPUs, or why there are none. ``nvml`` is the module ``pynvml``."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Inventory(reason=f"NVML: {error}")
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        speaks = _quiet(nvml, lambda: nvml.nvmlSystemGetCudaDriverVersion_v2())
        toolkit = f"{speaks // 1000}.{speaks % 1000 // 10}" if speaks else ""
        gpus = [_gpu(root, nvml, index, driver, toolkit) for index in range(nvml.nvmlDeviceGetCount())]
        return Inventory(tuple(gpus), "" if gpus else "NVML lists no GPU")
    except nvml.NVMLError as error:
        return Inventory(reason=f"NVML: {error}")
    finally:
        _quiet(nvml, nvml.nvmlShutdown)


def _gpu(root: Path, nvml: Any, index: int, driver: str, toolkit: str) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    nodes, problem = device_nodes(root, nvml.nvmlDeviceGetMinorNumber(handle))
    return Gpu(
        kind="cuda",
        architecture=f"sm_{major}{minor}",
        name=_text(nvml.nvmlDeviceGetName(handle)),
        card=card_of(_text(nvml.nvmlDeviceGetPciInfo(handle).busId)),
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        index=index,
        nodes=nodes,
        driver=driver,
        toolkit=toolkit,
        problem=problem,
        readings=_readings(nvml, handle),
        occupants=_occupants(nvml, handle),
    )


def _readings(nvml: Any, handle: Any) -> Readings:
    memory = _quiet(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    rates = _quiet(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    power = _quiet(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    limit = _quiet(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    mode = _quiet(nvml, lambda: nvml.nvmlDeviceGetPersistenceMode(handle))
    return Readings(
        busy_percent=None if rates is None else int(rates.gpu),
        temperature_c=_quiet(nvml, lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
        power_w=None if power is None else power / 1000,
        power_limit_w=None if limit is None else limit / 1000,
        clock_mhz=_quiet(nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        clock_limit_mhz=_quiet(nvml, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
        memory_clock_mhz=_quiet(nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        memory_used_bytes=None if memory is None else int(memory.used),
        memory_total_bytes=None if memory is None else int(memory.total),
        policy="" if mode is None else f"persistence mode {'enabled' if mode else 'disabled'}",
    )


def _occupants(nvml: Any, handle: Any) -> tuple[Occupant, ...]:
    found = []
    for process in _quiet(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle)) or ():
        name = _quiet(nvml, functools.partial(nvml.nvmlSystemGetProcessName, process.pid)) or ""
        found.append(Occupant(process.pid, _text(name).rpartition("/")[2], process.usedGpuMemory))
    return tuple(found)


def _quiet(nvml: Any, question: Callable[[], Any]) -> Any:
    """The answer, or None where this GPU or driver has none."""
    try:
        return question()
    except nvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    # Older releases of the package give bytes.
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
