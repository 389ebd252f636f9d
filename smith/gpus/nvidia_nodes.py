"""Device nodes and addresses of NVIDIA GPUs."""

from __future__ import annotations

from pathlib import Path

COMMON = ("nvidiactl", "nvidia-uvm")
OPTIONAL = ("nvidia-uvm-tools", "nvidia-modeset")


def card_of(bus: str) -> str:
    """``0000:0f:00`` from ``00000000:0F:00.0``: the kernel's form, without the function."""
    domain, _, rest = bus.lower().partition(":")
    return f"{domain[-4:]}:{rest.rpartition('.')[0] or rest}"


def device_nodes(root: Path, minor: int) -> tuple[tuple[Path, ...], str]:
    """The nodes that a program needs for one GPU, and what is missing of them."""
    needed = [f"nvidia{minor}", *COMMON]
    missing = [name for name in needed if not (root / "dev" / name).exists()]
    there = [Path("/dev") / name for name in (*needed, *OPTIONAL) if (root / "dev" / name).exists()]
    return tuple(there), f"there is no /dev/{missing[0]}" if missing else ""
