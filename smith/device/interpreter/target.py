"""Device profiles: what a repository may ask its device, as data.

The numbers are the vendors' published ones. They steer host code (block sizes, grid sizes, skips); they never enter a
kernel's arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30
KIB = 1 << 10


class UnknownTarget(ValueError):
    """No device profile has the name that was asked for."""


@dataclass(frozen=True)
class Target:
    """One GPU model, as torch and Triton would describe it."""

    arch: str
    """The name used in smith: ``gfx942``, ``sm_90``."""
    name: str
    """What ``torch.cuda.get_device_name`` answers."""
    backend: str
    """The Triton back end: ``hip`` or ``cuda``."""
    capability: tuple[int, int]
    warp_size: int
    processors: int
    """Compute units (AMD) or streaming multiprocessors (NVIDIA)."""
    shared_memory: int
    """Bytes of LDS or shared memory that one workgroup may use."""
    total_memory: int
    l2_cache: int
    toolkit: str
    """What ``torch.version.hip`` or ``torch.version.cuda`` answers."""
    registers: int = 65536
    max_threads: int = 2048

    @property
    def triton_arch(self) -> str | int:
        """The architecture in the form in which Triton's ``GPUTarget`` wants it."""
        return self.arch if self.backend == "hip" else self.capability[0] * 10 + self.capability[1]

    @property
    def gcn_arch_name(self) -> str:
        """``gcnArchName`` of torch's device properties; the architecture itself for NVIDIA."""
        return f"{self.arch}:sramecc+:xnack-" if self.backend == "hip" else self.arch


def _amd(arch: str, name: str, capability: tuple[int, int], processors: int, lds: int, memory: int, l2: int) -> Target:
    return Target(arch, name, "hip", capability, 64, processors, lds, memory, l2, "6.4.43482", 65536, 2048)


def _nvidia(
    arch: str,
    name: str,
    capability: tuple[int, int],
    processors: int,
    shared: int,
    memory: int,
    l2: int,
    max_threads: int = 2048,
) -> Target:
    return Target(arch, name, "cuda", capability, 32, processors, shared, memory, l2, "12.8", 65536, max_threads)


TARGETS: dict[str, Target] = {
    target.arch: target
    for target in (
        _amd("gfx90a", "AMD Instinct MI250X", (9, 0), 110, 64 * KIB, 64 * GIB, 8 << 20),
        _amd("gfx942", "AMD Instinct MI300X", (9, 4), 304, 64 * KIB, 192 * GIB, 4 << 20),
        _amd("gfx950", "AMD Instinct MI355X", (9, 5), 256, 160 * KIB, 288 * GIB, 4 << 20),
        _nvidia("sm_80", "NVIDIA A100-SXM4-80GB", (8, 0), 108, 163 * KIB, 80 * GIB, 40 << 20),
        _nvidia("sm_89", "NVIDIA L40S", (8, 9), 142, 99 * KIB, 48 * GIB, 96 << 20, 1536),
        _nvidia("sm_90", "NVIDIA H100 80GB HBM3", (9, 0), 132, 227 * KIB, 80 * GIB, 50 << 20),
        _nvidia("sm_100", "NVIDIA B200", (10, 0), 148, 227 * KIB, 180 * GIB, 126 << 20),
    )
}


def find_target(name: str) -> Target:
    """The profile named ``name``.

    :raises UnknownTarget: with the names that exist.
    """
    try:
        return TARGETS[name]
    except KeyError:
        raise UnknownTarget(f"no device profile {name!r}; there are: {', '.join(sorted(TARGETS))}") from None
