"""torch on the device ``cuda`` that is really the CPU.

Functions are replaced, not intercepted: a ``TorchFunctionMode`` belongs to one thread and is gone where autograd runs a
custom function's backward. Tensors keep saying that they live on ``cpu``; a device that was asked for as ``cuda``
becomes ``cpu`` wherever torch takes one.

Copies follow what would happen with two memories where that can be told: ``x.cpu()`` and ``x.to("cpu")`` copy, so
that an in-place kernel does not change the host's copy; ``x.cuda()`` and ``x.to("cuda")`` do not (nearly all such
tensors are on the device already, and gradients must reach the leaf that the test holds).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_T: Any = torch

FACTORIES = (
    "arange",
    "as_tensor",
    "asarray",
    "bartlett_window",
    "blackman_window",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_quantized",
    "empty_strided",
    "eye",
    "from_file",
    "full",
    "full_like",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "linspace",
    "logspace",
    "normal",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "range",
    "scalar_tensor",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
    "frombuffer",
)
"""Functions of ``torch`` that take a device."""

METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
"""Tensor methods that take a device by keyword only."""


def is_cuda_device(device: Any) -> bool:
    """Whether ``device`` (a string or ``torch.device``) names a CUDA device."""
    if isinstance(device, str):
        return device == "cuda" or device.startswith("cuda:")
    return isinstance(device, torch.device) and device.type == "cuda"


def on_cpu(device: Any) -> Any:
    """``device`` with ``cuda`` replaced by ``cpu``; anything else unchanged."""
    if is_cuda_device(device):
        return torch.device("cpu") if isinstance(device, torch.device) else "cpu"
    return device


def _device_argument(device: Any) -> Any:
    """As :func:`on_cpu`, for an argument that is surely a device: a bare index names a CUDA device."""
    return "cpu" if isinstance(device, int) and not isinstance(device, bool) else on_cpu(device)


def _with_device(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def on_the_cpu(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = _device_argument(kwargs["device"])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return function(*args, **kwargs)

    return on_the_cpu


def _patch_factories() -> None:
    for name in FACTORIES:
        if hasattr(torch, name):
            setattr(torch, name, _with_device(getattr(torch, name)))
    for name in METHODS:
        setattr(torch.Tensor, name, _with_device(getattr(torch.Tensor, name)))
    load = _T.load

    @functools.wraps(load)
    def load_on_cpu(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        return load(f, on_cpu(map_location) if map_location is not None else "cpu", *args, **kwargs)

    _T.load = load_on_cpu


def _patch_tensor_moves() -> None:
    tensor: Any = torch.Tensor
    to, cpu = tensor.to, tensor.cpu

    @functools.wraps(to)
    def tensor_to(self: Any, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device", args[0] if args else None)
        asked_for_host = device == "cpu" and isinstance(device, str)
        if "device" in kwargs:
            kwargs["device"] = _device_argument(kwargs["device"])
        result = to(
            self,
            *(_device_argument(arg) if position == 0 else arg for position, arg in enumerate(args)),
            **kwargs,
        )
        return result.clone() if asked_for_host and result is self else result

    @functools.wraps(cpu)
    def tensor_cpu(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = cpu(self, *args, **kwargs)
        return result.clone() if result is self else result

    tensor.to, tensor.cpu = tensor_to, tensor_cpu
    tensor.cuda = lambda self, *args, **kwargs: self
    tensor.pin_memory = lambda self, *args, **kwargs: self
    tensor.is_pinned = lambda self, *args, **kwargs: False
    tensor.record_stream = lambda self, stream: None
    tensor.is_cuda = property(lambda self: True)


def _patch_modules() -> None:
    module: Any = torch.nn.Module
    to, to_empty = module.to, module.to_empty

    @functools.wraps(to)
    def module_to(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = _device_argument(kwargs["device"])
        return to(
            self,
            *(_device_argument(arg) if position == 0 else arg for position, arg in enumerate(args)),
            **kwargs,
        )

    module.to = module_to
    module.to_empty = lambda self, *, device, recurse=True: to_empty(
        self, device=_device_argument(device), recurse=recurse
    )
    module.cuda = lambda self, device=None: self


_ORIGINAL_GENERATOR: Any = torch.Generator
_ORIGINAL_TYPE: Any = type(torch.Generator)


class _GeneratorType(_ORIGINAL_TYPE):  # type: ignore[misc]
    """Lets generators made before the patch count as generators."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return issubclass(type(instance), _ORIGINAL_GENERATOR)


def _patch_generator() -> None:
    class Generator(_ORIGINAL_GENERATOR, metaclass=_GeneratorType):  # type: ignore[misc]
        """A generator on the CPU, whichever device was asked for."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return _ORIGINAL_GENERATOR.__new__(cls, _device_argument(device))

    _T.Generator = Generator


def _patch_contexts() -> None:
    """Default devices and autocast regions."""
    from torch.utils import _device

    context: Any = _device.DeviceContext
    original_init = context.__init__
    context.__init__ = lambda self, device: original_init(self, torch.device(on_cpu(device)))
    set_default_device = _T.set_default_device
    _T.set_default_device = lambda device: set_default_device(_device_argument(device))

    autocast: Any = torch.amp.autocast_mode.autocast
    autocast_init = autocast.__init__

    def on_cpu_autocast(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        autocast_init(self, on_cpu(device_type), *args, **kwargs)

    autocast.__init__ = on_cpu_autocast
    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        _map_first_argument(torch, name)
    amp: Any = torch.amp.autocast_mode
    for name in ("custom_fwd", "custom_bwd"):
        mapped = _with_device_type(getattr(amp, name))
        for owner in (amp, torch.amp):
            setattr(owner, name, mapped)
        setattr(torch.cuda.amp, name, functools.partial(mapped, device_type="cuda"))
    _T.get_autocast_gpu_dtype = lambda: torch.get_autocast_dtype("cpu")


def _map_first_argument(owner: Any, name: str) -> None:
    original = getattr(owner, name)
    setattr(owner, name, lambda *args: original(*(on_cpu(arg) for arg in args)))


def _with_device_type(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def on_the_cpu(*args: Any, **kwargs: Any) -> Any:
        if "device_type" in kwargs:
            kwargs["device_type"] = on_cpu(kwargs["device_type"])
        return function(*args, **kwargs)

    return on_the_cpu


def _patch_missing_on_cpu() -> None:
    """What CUDA has and the CPU lacks: a histogram of integers."""
    histc = torch.histc

    @functools.wraps(histc)
    def integer_histc(input: Any, *args: Any, **kwargs: Any) -> Any:
        if input.is_floating_point():
            return histc(input, *args, **kwargs)
        return histc(input.double(), *args, **kwargs).to(input.dtype)

    _T.histc = integer_histc
    tensor: Any = torch.Tensor
    tensor.histc = lambda self, *args, **kwargs: integer_histc(self, *args, **kwargs)


def _patch_custom_operators() -> None:
    """An operator that is defined for CUDA alone is what tensors on this device get."""
    library: Any = torch.library
    custom_op = getattr(library, "custom_op", None)
    if custom_op is None:
        return

    @functools.wraps(custom_op)
    def custom_op_on_cpu(*args: Any, **kwargs: Any) -> Any:
        types = kwargs.get("device_types")
        if types is not None:
            kwargs["device_types"] = (
                on_cpu(types) if isinstance(types, str) else sorted({on_cpu(kind) for kind in types})
            )
        return custom_op(*args, **kwargs)

    library.custom_op = custom_op_on_cpu


def install() -> None:
    """Patch torch. Threads started before or after, autograd's too, see the same functions."""
    _patch_factories()
    _patch_tensor_moves()
    _patch_modules()
    _patch_generator()
    _patch_contexts()
    _patch_missing_on_cpu()
    _patch_custom_operators()
