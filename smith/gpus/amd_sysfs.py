"""AMD GPUs as the kernel shows them: the topology of KFD, the PCI device of each, and who holds its memory.

Formats: ``Documentation/gpu/amdgpu`` of the kernel for the PCI device's files; a node of KFD has ``gpu_id`` and
``properties`` (a name and a number a line).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from smith.gpus.base import Occupant, Readings, number, read_text, whole

KFD = Path("sys/class/kfd/kfd")
_DPM = re.compile(r"^\s*(?:\d+|S):\s*(\d+)\s*mhz\s*(\*?)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class KfdNode:
    """One GPU in KFD's topology, in its order."""

    number: int
    gpu_id: int
    properties: Mapping[str, int]

    @property
    def architecture(self) -> str:
        """``gfx942`` from 90402, ``gfx90a`` from 90010; empty where the kernel does not say."""
        version = self.properties.get("gfx_target_version", 0)
        major, minor, step = version // 10000, version // 100 % 100, version % 100
        return f"gfx{major}{minor:x}{step:x}" if version else ""

    @property
    def card(self) -> str:
        """PCI address without the function, which partitions of one card differ in."""
        location = self.properties.get("location_id", 0)
        return f"{self.properties.get('domain', 0) & 0xFFFF:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}"

    @property
    def uuid(self) -> str:
        """As ``ROCR_VISIBLE_DEVICES`` wants it; GPUs without a serial number of their own have none."""
        unique = self.properties.get("unique_id", 0)
        return f"GPU-{unique:016x}" if unique else ""

    @property
    def render(self) -> str:
        """The name of its render node in ``/dev/dri``."""
        return f"renderD{self.properties.get('drm_render_minor', 0)}"


def kfd_nodes(root: Path) -> list[KfdNode]:
    """The GPUs of the topology; processors are nodes too and are left out. Empty where there is no topology."""
    folder = root / KFD / "topology" / "nodes"
    found = []
    for number_ in sorted(int(p.name) for p in _folders(folder) if p.name.isdigit()):
        properties = _properties(read_text(folder / str(number_) / "properties"))
        # A node that a container was not given answers with an error here, and is none of its GPUs.
        gpu_id = read_text(folder / str(number_) / "gpu_id")
        if properties.get("simd_count", 0) > 0 and gpu_id.isdigit() and int(gpu_id) > 0:
            found.append(KfdNode(number_, int(gpu_id), properties))
    return found


def _properties(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _folders(folder: Path) -> Iterator[Path]:
    try:
        yield from (path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return


def pci_folder(root: Path, node: KfdNode) -> Path:
    """The folder of the card's PCI device, where its measurements lie."""
    folder = root / "sys/bus/pci/devices" / f"{node.card}.0"
    return folder if folder.is_dir() else root / "sys/class/drm" / node.render / "device"


def readings(folder: Path) -> Readings:
    """What the files of one PCI device say."""
    clock, limit = _levels(read_text(folder / "pp_dpm_sclk"))
    sensors = next(iter(sorted(_folders(folder / "hwmon"))), folder / "hwmon")
    power = number(read_text(sensors / "power1_average") or read_text(sensors / "power1_input"))
    cap = number(read_text(sensors / "power1_cap"))
    return Readings(
        busy_percent=whole(read_text(folder / "gpu_busy_percent")),
        temperature_c=_temperature(sensors),
        power_w=None if power is None else power / 1e6,
        power_limit_w=None if cap is None else cap / 1e6,
        clock_mhz=clock,
        clock_limit_mhz=limit,
        memory_clock_mhz=_levels(read_text(folder / "pp_dpm_mclk"))[0],
        memory_used_bytes=whole(read_text(folder / "mem_info_vram_used")),
        memory_total_bytes=whole(read_text(folder / "mem_info_vram_total")),
        policy=_policy(folder),
    )


def _levels(text: str) -> tuple[int | None, int | None]:
    """The clock that is marked as the present one, and the highest, in MHz."""
    levels = [(int(mhz), bool(star)) for mhz, star in _DPM.findall(text)]
    return next((mhz for mhz, star in levels if star), None), max((mhz for mhz, _ in levels), default=None)


def _temperature(sensors: Path) -> float | None:
    """The hottest spot where the device has one, else the first sensor, in degrees Celsius."""
    values: dict[str, float] = {}
    for path in sorted(sensors.glob("temp*_input")):
        degrees = number(read_text(path))
        if degrees is not None:
            label = read_text(path.with_name(path.name.replace("_input", "_label"))) or path.name
            values.setdefault(label, degrees / 1000)
    return values.get("junction", next(iter(values.values()), None))


def _policy(folder: Path) -> str:
    level = read_text(folder / "power_dpm_force_performance_level")
    modes = [read_text(folder / f"current_{what}_partition") for what in ("compute", "memory")]
    words = [f"performance level {level}"] if level else []
    if any(modes):
        words.append(f"partition {'/'.join(mode for mode in modes if mode)}")
    return ", ".join(words)


def occupants(root: Path, gpu_id: int) -> tuple[Occupant, ...]:
    """The processes that hold memory or a queue of the GPU, by KFD."""
    found = []
    for folder in sorted(_folders(root / KFD / "proc")):
        if not folder.name.isdigit():
            continue
        held = whole(read_text(folder / f"vram_{gpu_id}"))
        queues = any(read_text(q / "gpuid") == str(gpu_id) for q in _folders(folder / "queues"))
        if held or queues:
            name = read_text(root / "proc" / folder.name / "comm")
            found.append(Occupant(int(folder.name), name, held))
    return tuple(found)


def driver_version(root: Path) -> str:
    """Of the module where it is a packaged one, else the kernel that it comes with."""
    version = read_text(root / "sys/module/amdgpu/version")
    release = read_text(root / "proc/sys/kernel/osrelease")
    return f"amdgpu {version}" if version else f"amdgpu of Linux {release}" if release else ""
