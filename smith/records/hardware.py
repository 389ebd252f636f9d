"""The GPU that something was found on, and what ran there."""

from __future__ import annotations

from smith.records.base import Record


class UsedHardware(Record):
    """What a receipt says of the GPU: enough to tell whether another machine is alike, nothing that names this one."""

    architecture: str
    """``gfx942``, ``sm_90``."""
    name: str
    """As the vendor sells it."""
    driver: str
    toolkit: str
    """Of the machine: version of ROCm, or of CUDA that the driver speaks."""
    torch: str
    """Version of torch in the environment that was used."""
    torch_toolkit: str
    """What torch was built for: ``hip 6.4.43482``, ``cuda 12.8``."""
    triton: str = ""
    memory_bytes: int | None = None
    clock_limit_mhz: int | None = None
    power_limit_w: float | None = None
    policy: str = ""
    """How clocks and power are governed, in the driver's words."""
    waited_ms: int = 0
    """How long it was waited for the GPU."""
    held_ms: int = 0
    """How long the GPU was held, to the end of the last test."""
