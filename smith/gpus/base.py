"""What is known of one GPU, and of all GPUs of one kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

KINDS = ("rocm", "cuda")
"""Kinds of device that are GPUs. A device's name is its kind, or kind and architecture: ``rocm:gfx942``."""
BUSY_PERCENT = 20
"""From how much on a GPU is taken to be working: for somebody, where no process is seen."""
VENDORS = {"rocm": "AMD", "cuda": "NVIDIA"}
_NOT_SAID = re.compile(r"\[?(n/a|not supported|unknown error|insufficient permissions|none)\]?", re.IGNORECASE)


def is_gpu(device: str) -> bool:
    """Whether a device's name is that of a GPU."""
    return device.partition(":")[0] in KINDS


@dataclass(frozen=True)
class Outcome:
    """How a short command ended; status None where it could not be started or took too long."""

    status: int | None
    output: str


class Run(Protocol):
    """Runs a short command."""

    def __call__(self, argv: Sequence[str], /) -> Outcome: ...


class Which(Protocol):
    """Finds a program on PATH."""

    def __call__(self, name: str, /) -> str | None: ...


@dataclass(frozen=True)
class Occupant:
    """A process that uses a GPU. The number is the machine's, also where a container counts its own; 0: not known."""

    pid: int
    name: str = ""
    memory_bytes: int | None = None

    def __str__(self) -> str:
        if self.pid == 0:
            return self.name
        return f"process {self.pid}{f' ({self.name})' if self.name else ''}"


@dataclass(frozen=True)
class Readings:
    """What a GPU does at the moment, as far as its driver says; None where it does not."""

    busy_percent: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    clock_mhz: int | None = None
    clock_limit_mhz: int | None = None
    memory_clock_mhz: int | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    policy: str = ""
    """How clocks are governed, in the driver's words: a performance level, a partition mode, a persistence mode."""


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver counts them (of a partitioned AMD card: one partition)."""

    kind: str
    architecture: str
    """``gfx942``, ``sm_90``."""
    name: str
    card: str
    """PCI address of the card without its function: what leases are about. Partitions of a card share it."""
    uuid: str
    """As the variables for visible devices want it (``GPU-...``); empty where the driver gives none."""
    index: int
    """Its place in the driver's own order, from 0."""
    nodes: tuple[Path, ...] = ()
    """Device nodes that a program needs to use it."""
    folders: tuple[Path, ...] = ()
    """Folders that a program needs to read."""
    driver: str = ""
    toolkit: str = ""
    """Version of ROCm, or of CUDA that the driver speaks."""
    readings: Readings = Readings()
    occupants: tuple[Occupant, ...] = ()
    problem: str = ""
    """Why this user cannot use it; empty where nothing speaks against it."""
    handle: int = 0
    """KFD's own id of it (AMD only)."""

    @property
    def device(self) -> str:
        """The name of the device in receipts: ``rocm:gfx942``."""
        return f"{self.kind}:{self.architecture}"

    def __str__(self) -> str:
        return f"{self.name or VENDORS[self.kind] + ' GPU'} ({self.architecture}, {self.card})"


@dataclass(frozen=True)
class GpuState:
    """What a GPU does at one moment, and whose processes are on its card."""

    readings: Readings = Readings()
    occupants: Sequence[Occupant] = ()


@dataclass(frozen=True)
class Inventory:
    """The GPUs of one kind, and in ``reason`` why there are none (empty where there is one)."""

    gpus: tuple[Gpu, ...] = ()
    reason: str = ""
    notes: tuple[str, ...] = field(default=())
    """What could not be found out, in words."""


def number(text: object) -> float | None:
    """The first number in what a driver said, or None where it said that there is none."""
    said = str(text).strip()
    if not said or _NOT_SAID.fullmatch(said):
        return None
    found = re.search(r"-?\d+(?:\.\d+)?", said)
    return float(found[0]) if found else None


def whole(text: object, scale: int = 1) -> int | None:
    """The same as a whole number times ``scale``."""
    found = number(text)
    return None if found is None else round(found * scale)


def read_text(path: Path) -> str:
    """What a small file says, without the white space around it; empty where it cannot be read.

    Files of sysfs fail in many ways when a device is busy, asleep or hidden; none of them is worth an end.
    """
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
