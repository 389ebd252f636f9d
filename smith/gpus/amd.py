"""Which AMD GPUs there are and whether this user can use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from smith.gpus.amd_sysfs import KfdNode, driver_version, kfd_nodes, occupants, pci_folder, readings
from smith.gpus.amd_tools import agents, ask, rocm_version, static
from smith.gpus.base import Gpu, Inventory, Run, Which, read_text

ROCM = Path("opt/rocm")
# What the runtime reads about the machine: topology, render nodes, processors' memory, and whether the module is there.
SHOWN = (
    "sys/class/kfd",
    "sys/devices/virtual/kfd",
    "sys/class/drm",
    "sys/dev/char",
    "sys/bus/pci/devices",
    "sys/module/amdgpu",
    "sys/devices/system/node",
)
ABSENT = "no GPU, no amdgpu driver, or a container that was started without --device=/dev/kfd"
MayUse = Callable[[Path], bool]


def inventory(root: Path, which: Which, run: Run, may_use: MayUse) -> Inventory:
    """The AMD GPUs of the machine whose ``/`` is ``root``, in the order of KFD, which is the runtime's."""
    kfd = root / "dev/kfd"
    if not kfd.exists():
        return Inventory(reason=f"no AMD GPU: there is no /dev/kfd ({ABSENT})")
    if not may_use(kfd):
        return Inventory(reason="/dev/kfd is not readable and writable for this user: join the groups render and video")
    nodes = kfd_nodes(root)
    told = agents(ask(which, run, "rocminfo"))
    if not nodes:
        seen = ", ".join(sorted({agent.architecture for agent in told}))
        words = f"; rocminfo sees {seen}, but not where" if seen else ""
        return Inventory(reason=f"/dev/kfd exists, but /sys/class/kfd lists no GPU that this machine may use{words}")
    smi = static(ask(which, run, "amd-smi", "static", "--json"))
    version = _rocm_version(root) or rocm_version(ask(which, run, "amd-smi", "version", "--json"))
    names = {agent.uuid or agent.card: agent.name for agent in told}
    # Partitions may share the serial number of their card, and then it names none of them.
    shared = {n.uuid for n in nodes if sum(other.uuid == n.uuid for other in nodes) > 1}
    gpus = []
    for index, node in enumerate(nodes):
        gpu = _gpu(root, node, index, may_use, version)
        more = smi.get(node.card)
        name = names.get(node.uuid or node.card) or names.get(node.card) or (more.name if more else "")
        gpu = replace(gpu, name=gpu.name or name, uuid="" if node.uuid in shared else gpu.uuid)
        if more is not None:
            limit = gpu.readings.power_limit_w or more.power_limit_w
            gpu = replace(
                gpu,
                driver=more.driver or gpu.driver,
                architecture=gpu.architecture or more.architecture,
                readings=replace(gpu.readings, power_limit_w=limit),
            )
        gpus.append(gpu)
    return Inventory(tuple(gpus))


def _gpu(root: Path, node: KfdNode, index: int, may_use: MayUse, version: str) -> Gpu:
    folder = pci_folder(root, node)
    render = root / "dev/dri" / node.render
    problem = ""
    if not render.exists():
        problem = f"there is no /dev/dri/{node.render} (a container without --device=/dev/dri)"
    elif not may_use(render):
        problem = f"/dev/dri/{node.render} is not readable and writable for this user: join the groups render and video"
    return Gpu(
        kind="rocm",
        architecture=node.architecture,
        name=read_text(folder / "product_name"),
        card=node.card,
        uuid=node.uuid,
        index=index,
        nodes=(Path("/dev/kfd"), Path("/dev/dri") / node.render),
        folders=_folders(root, folder),
        driver=driver_version(root),
        toolkit=version,
        readings=readings(folder),
        occupants=occupants(root, node.gpu_id),
        problem=problem,
        handle=node.gpu_id,
    )


def _folders(root: Path, pci: Path) -> tuple[Path, ...]:
    """Folders as a program inside names them: those of the kernel, the PCI device itself, and ROCm's installation."""
    found = [Path("/") / name for name in SHOWN if (root / name).exists()]
    real = pci.resolve()
    if pci.is_dir() and real.is_relative_to(root.resolve()):
        found.append(Path("/") / real.relative_to(root.resolve()))
    rocm = root / ROCM
    if rocm.exists():
        found += [Path("/") / ROCM, Path("/") / rocm.resolve().relative_to(root.resolve())]
    return tuple(dict.fromkeys(found))


def _rocm_version(root: Path) -> str:
    return read_text(root / ROCM / ".info/version").partition("-")[0]
