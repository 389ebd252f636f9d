"""Machines with GPUs as files and outputs of programs.

These are recordings in the documented formats (kernel: amdgpu and KFD sysfs; ROCm: rocminfo, AMD SMI; NVIDIA: the CSV
of nvidia-smi), written by hand from the documentation. None of them was taken from a machine of ours.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smith.gpus.base import Outcome
from smith.gpus.machine import Machine

# Two MI300X: serial number 0x4b2c..., as KFD prints it in decimal.
SERIALS = (0x4B2C9A6F00D1E2F3, 0x91A80C4D5E6F7081)
ROCMINFO = """\
ROCk module version 6.12.12 is loaded
=====================
HSA System Attributes
=====================
Runtime Version:         1.15
==========
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD EPYC 9654 96-Core Processor
  Uuid:                    CPU-XX
  Marketing Name:          AMD EPYC 9654 96-Core Processor
  Vendor Name:             CPU
  Device Type:             CPU
  BDFID:                   0
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
*******
Agent 2
*******
  Name:                    gfx942
  Uuid:                    GPU-4b2c9a6f00d1e2f3
  Marketing Name:          AMD Instinct MI300X
  Vendor Name:             AMD
  Node:                    1
  Device Type:             GPU
  Cache Info:
    L1:                      32(0x20) KB
  Chip ID:                 29857(0x74a1)
  BDFID:                   3072
  Domain:                  0
  Wavefront Size:          64(0x40)
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-
*******
Agent 3
*******
  Name:                    gfx942
  Uuid:                    GPU-91a80c4d5e6f7081
  Marketing Name:          AMD Instinct MI300X
  Vendor Name:             AMD
  Node:                    2
  Device Type:             GPU
  BDFID:                   8192
  Domain:                  0
*** Done ***
"""
AMD_SMI_STATIC = """\
[{"gpu": 0,
  "asic": {"market_name": "AMD Instinct MI300X", "vendor_id": "0x1002", "device_id": "0x74a1", "oam_id": 0,
           "num_compute_units": 304, "target_graphics_version": "gfx942"},
  "bus": {"bdf": "0000:0C:00.0", "max_pcie_width": 16},
  "limit": {"max_power": {"value": 750, "unit": "W"}, "socket_power": {"value": 750, "unit": "W"}},
  "driver": {"name": "amdgpu", "version": "6.12.12"}}]
"""
AMD_SMI_STATIC_7 = """\
WARNING: User is missing the following required groups: render
{"gpu_data": [{"gpu": 0,
  "asic": {"market_name": "N/A", "target_graphics_version": "gfx950"},
  "bus": {"bdf": "0001:0c:00.0"},
  "limit": {"ppt0": {"socket_power_limit": {"value": 1400, "unit": "W"}}},
  "driver": {"name": "amdgpu", "version": "6.14.14"}}]}
"""
AMD_SMI_VERSION = (
    '[{"tool": "AMDSMI Tool", "version": "25.3.0", "amdsmi_library_version": "25.3.0.0", "rocm_version": "6.4.0"}]'
)

NVIDIA_GPUS = """\
0, GPU-8f6b0c9e-3a51-4b6e-9a27-0d6d6f1c2b3a, NVIDIA H100 80GB HBM3, 9.0, 570.86.15, 00000000:0F:00.0, 81559, 4, 0, 31, \
71.32, 700.00, 345, 1980, 2619, Enabled
1, GPU-11d2a7c4-55f0-4f0e-8a3c-77aa11bb22cc, NVIDIA H100 80GB HBM3, 9.0, 570.86.15, 00000000:2D:00.0, 81559, 40213, \
98, 62, [N/A], 700.00, 1755, 1980, 2619, Enabled
"""
NVIDIA_PROCESSES = "GPU-11d2a7c4-55f0-4f0e-8a3c-77aa11bb22cc, 4711, /usr/bin/python3.12, 40190\n"
NVIDIA_VERSION = """\
NVIDIA-SMI version  : 570.86.15
NVML version        : 570.86
DRIVER version      : 570.86.15
CUDA Version        : 12.8
"""


@dataclass
class Programs:
    """Programs that answer as recorded: by name and first arguments. ``asked`` keeps what was run."""

    outputs: Mapping[str, str | Outcome] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def which(self, name: str) -> str | None:
        return f"/opt/bin/{name}" if any(key.split()[0] == name for key in self.outputs) else None

    def run(self, argv: Sequence[str]) -> Outcome:
        line = " ".join([Path(argv[0]).name, *argv[1:]])
        self.asked.append(line)
        for key, output in self.outputs.items():
            if line.startswith(key):
                return output if isinstance(output, Outcome) else Outcome(0, output)
        return Outcome(2, f"unknown: {line}")


def machine(root: Path, outputs: Mapping[str, str | Outcome] | None = None, nvml: object = None) -> Machine:
    """The machine whose ``/`` is ``root``."""
    programs = Programs(outputs or {})
    return Machine(root=root, which=programs.which, run=programs.run, load_nvml=lambda: nvml)


def node(path: Path) -> None:
    """A device node: ``/dev/null``'s numbers where nodes may be made, else a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        path.chmod(0o666)
    except PermissionError:
        path.touch()
        path.chmod(0o666)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def properties(**changed: int) -> str:
    """A node's properties in KFD's form."""
    values = {
        "cpu_cores_count": 0, "simd_count": 1216, "mem_banks_count": 1, "max_waves_per_simd": 8, "lds_size_in_kb": 64,
        "wave_front_size": 64, "gfx_target_version": 90402, "vendor_id": 4098, "device_id": 29857, "location_id": 3072,
        "domain": 0, "drm_render_minor": 128, "unique_id": SERIALS[0], "num_xcc": 8,
        **changed,
    }  # fmt: skip
    return "".join(f"{name} {value}\n" for name, value in values.items())


def amd_machine(root: Path, *, second: bool = True) -> Path:
    """A machine with one or two MI300X, one processor node before them; ROCm 6.4 is installed."""
    node(root / "dev/kfd")
    nodes = root / "sys/devices/virtual/kfd/kfd/topology/nodes"
    write(nodes / "0/gpu_id", "0\n")
    write(nodes / "0/properties", properties(cpu_cores_count=96, simd_count=0, gfx_target_version=0, unique_id=0))
    _amd_gpu(root, 1, 45412, "0000:0c:00.0", 3072, 128, SERIALS[0])
    if second:
        _amd_gpu(root, 2, 61002, "0000:20:00.0", 8192, 136, SERIALS[1])
    (root / "sys/class/kfd").mkdir(parents=True)
    (root / "sys/class/kfd/kfd").symlink_to("../../devices/virtual/kfd/kfd")
    write(root / "sys/module/amdgpu/version", "6.12.12\n")
    write(root / "opt/rocm-6.4.0/.info/version", "6.4.0-47\n")
    (root / "opt/rocm").symlink_to("rocm-6.4.0")
    return root


def _amd_gpu(root: Path, number: int, gpu_id: int, bdf: str, location: int, render: int, serial: int) -> None:
    folder = root / "sys/devices/virtual/kfd/kfd/topology/nodes" / str(number)
    write(folder / "gpu_id", f"{gpu_id}\n")
    write(folder / "properties", properties(location_id=location, drm_render_minor=render, unique_id=serial))
    node(root / f"dev/dri/renderD{render}")
    pci = root / "sys/devices/pci0000:00" / bdf
    for name, text in {
        "vendor": "0x1002\n",
        "unique_id": f"{serial:016x}\n",
        "gpu_busy_percent": "0\n",
        "pp_dpm_sclk": "0: 132Mhz *\n1: 2100Mhz \n",
        "pp_dpm_mclk": "0: 900Mhz *\n1: 1300Mhz \n",
        "mem_info_vram_total": "206141652992\n",
        "mem_info_vram_used": "297123840\n",
        "power_dpm_force_performance_level": "auto\n",
        "current_compute_partition": "SPX\n",
        "current_memory_partition": "NPS1\n",
        "hwmon/hwmon4/power1_average": "138000000\n",
        "hwmon/hwmon4/power1_cap": "750000000\n",
        "hwmon/hwmon4/temp1_input": "36000\n",
        "hwmon/hwmon4/temp1_label": "edge\n",
        "hwmon/hwmon4/temp2_input": "41000\n",
        "hwmon/hwmon4/temp2_label": "junction\n",
    }.items():
        write(pci / name, text)
    devices = root / "sys/bus/pci/devices"
    devices.mkdir(parents=True, exist_ok=True)
    (devices / bdf).symlink_to(f"../../../devices/pci0000:00/{bdf}")


def occupy(root: Path, pid: int, gpu_id: int, vram: int, name: str = "python3") -> None:
    """Let a process hold memory of a GPU, as KFD tells it."""
    write(root / f"sys/devices/virtual/kfd/kfd/proc/{pid}/vram_{gpu_id}", f"{vram}\n")
    write(root / f"proc/{pid}/comm", f"{name}\n")


def nvidia_machine(root: Path) -> Path:
    """A machine with two H100, whose device numbers are not in the order of their indices."""
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"):
        node(root / "dev" / name)
    for bus, minor in (("0000:0f:00.0", 1), ("0000:2d:00.0", 0)):
        write(root / f"proc/driver/nvidia/gpus/{bus}/information", f"Model: NVIDIA H100\nDevice Minor: \t {minor}\n")
    return root


NVIDIA = {
    "nvidia-smi --query-gpu": NVIDIA_GPUS,
    "nvidia-smi --query-compute-apps": NVIDIA_PROCESSES,
    "nvidia-smi --version": NVIDIA_VERSION,
}
