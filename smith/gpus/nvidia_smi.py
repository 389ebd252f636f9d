"""NVIDIA GPUs as ``nvidia-smi`` tells of them, for machines without the package ``nvidia-ml-py``."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from smith.gpus.base import Gpu, Inventory, Occupant, Readings, Run, Which, number, read_text, whole
from smith.gpus.nvidia_nodes import card_of, device_nodes

MIB = 1 << 20
FIELDS = (
    "index,uuid,name,compute_cap,driver_version,pci.bus_id,memory.total,memory.used,utilization.gpu,temperature.gpu,"
    "power.draw,power.limit,clocks.sm,clocks.max.sm,clocks.mem,persistence_mode"
)
GPUS = (f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits")
PROCESSES = ("--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv,noheader,nounits")


def inventory(root: Path, which: Which, run: Run) -> Inventory:
    """All GPUs, or why there are none."""
    program = which("nvidia-smi")
    if program is None:
        return Inventory(reason="nvidia-smi is not on PATH")
    listed = run([program, *GPUS])
    rows = _rows(listed.output) if listed.status == 0 else []
    if not rows:
        said = listed.output.strip().splitlines()
        return Inventory(reason=f"nvidia-smi found no GPU{f': {said[0].strip()}' if said else ''}")
    processes = run([program, *PROCESSES])
    versions = run([program, "--version"])
    using = _occupants(processes.output if processes.status == 0 else "")
    toolkit = re.search(r"CUDA Version\s*:\s*([\d.]+)", versions.output) if versions.status == 0 else None
    gpus = [_gpu(root, row, using, toolkit[1] if toolkit else "") for row in rows if len(row) == len(FIELDS.split(","))]
    notes = () if processes.status == 0 else ("nvidia-smi does not tell which processes use a GPU",)
    return Inventory(tuple(gpus), "" if gpus else "nvidia-smi answered in a form that is not known", notes)


def _rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), skipinitialspace=True) if row]


def _gpu(root: Path, row: list[str], using: dict[str, list[Occupant]], toolkit: str) -> Gpu:
    said = dict(zip(FIELDS.split(","), row, strict=True))
    card = card_of(said["pci.bus_id"])
    index = whole(said["index"]) or 0
    minor = whole(_minor(root, said["pci.bus_id"]))
    nodes, problem = device_nodes(root, index if minor is None else minor)
    mode = said["persistence_mode"]
    return Gpu(
        kind="cuda",
        architecture=f"sm_{said['compute_cap'].replace('.', '')}",
        name=said["name"],
        card=card,
        uuid=said["uuid"],
        index=index,
        nodes=nodes,
        driver=said["driver_version"],
        toolkit=toolkit,
        problem=problem,
        occupants=tuple(using.get(said["uuid"], ())),
        readings=Readings(
            busy_percent=whole(said["utilization.gpu"]),
            temperature_c=number(said["temperature.gpu"]),
            power_w=number(said["power.draw"]),
            power_limit_w=number(said["power.limit"]),
            clock_mhz=whole(said["clocks.sm"]),
            clock_limit_mhz=whole(said["clocks.max.sm"]),
            memory_clock_mhz=whole(said["clocks.mem"]),
            memory_used_bytes=whole(said["memory.used"], MIB),
            memory_total_bytes=whole(said["memory.total"], MIB),
            policy=f"persistence mode {mode.lower()}" if mode.lower() in ("enabled", "disabled") else "",
        ),
    )


def _occupants(text: str) -> dict[str, list[Occupant]]:
    found: dict[str, list[Occupant]] = {}
    for row in _rows(text):
        if len(row) == 4 and row[1].isdigit():
            name = row[2].rpartition("/")[2]
            found.setdefault(row[0], []).append(Occupant(int(row[1]), name, whole(row[3], MIB)))
    return found


def _minor(root: Path, bus: str) -> str:
    """The number of ``/dev/nvidia<N>``, which is not always the index: the driver's own file says it."""
    domain, _, rest = bus.lower().partition(":")
    told = read_text(root / "proc/driver/nvidia/gpus" / f"{domain[-4:]}:{rest}" / "information")
    found = re.search(r"^Device Minor:\s*(\d+)", told, re.MULTILINE)
    return found[1] if found else ""
