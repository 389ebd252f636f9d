"""The GPUs of this machine, found when they are asked for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from smith import process
from smith.errors import Unavailable
from smith.gpus import amd, amd_sysfs, nvidia_smi, nvml
from smith.gpus.base import (
    BUSY_PERCENT,
    KINDS,
    VENDORS,
    Gpu,
    GpuState,
    Inventory,
    Occupant,
    Outcome,
    Readings,
    Run,
    Which,
)

TIMEOUT_S = 20.0


def run_briefly(argv: Sequence[str]) -> Outcome:
    """Run ``argv`` for at most :data:`TIMEOUT_S` seconds; a driver that hangs must not hang smith."""
    try:
        done = process.run(argv, timeout_s=TIMEOUT_S)
    except Unavailable as error:
        return Outcome(None, error.message)
    if done.timed_out:
        return Outcome(None, f"no answer within {TIMEOUT_S:.0f} s")
    return Outcome(done.status, done.stdout.text + done.stderr.text)


def _readable_and_writable(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


@dataclass(frozen=True)
class Machine:
    """The machine whose ``/`` is ``root``. Each kind is looked up once; :meth:`occupants` looks anew each time."""

    root: Path = Path("/")
    which: Which = shutil.which
    run: Run = run_briefly
    may_use: Callable[[Path], bool] = _readable_and_writable
    load_nvml: Callable[[], Any | None] = nvml.load
    _known: dict[str, Inventory] = field(default_factory=dict, repr=False, compare=False)

    def inventory(self, kind: str) -> Inventory:
        """The GPUs of one kind (``rocm`` or ``cuda``), and why there are none."""
        if kind not in self._known:
            self._known[kind] = self._look(kind)
        return self._known[kind]

    def _look(self, kind: str) -> Inventory:
        if kind == "rocm":
            return amd.inventory(self.root, self.which, self.run, self.may_use)
        module = self.load_nvml()
        first = nvml.inventory(self.root, module) if module is not None else None
        if first is not None and first.gpus:
            return first
        second = nvidia_smi.inventory(self.root, self.which, self.run)
        if second.gpus:
            return second
        words = first.reason if first is not None else "the package nvidia-ml-py is not installed"
        return Inventory(reason=f"no NVIDIA GPU: {words}; {second.reason}")

    def matching(self, device: str) -> Inventory:
        """The GPUs that ``device`` (``rocm``, ``rocm:gfx942``, ...) may mean and this user can use, or why not."""
        kind, _, architecture = device.partition(":")
        found = self.inventory(kind)
        if not found.gpus:
            return found
        fitting = [gpu for gpu in found.gpus if architecture in ("", gpu.architecture)]
        if not fitting:
            here = ", ".join(sorted({gpu.architecture for gpu in found.gpus}))
            return Inventory(reason=f"no {VENDORS[kind]} GPU of this architecture: asked {architecture}, here {here}")
        usable = [gpu for gpu in fitting if not gpu.problem and gpu.architecture]
        if not usable:
            return Inventory(reason=f"{fitting[0]}: {fitting[0].problem or 'its architecture is not known'}")
        # One name of a device is one architecture: where a machine has several, the first found is meant.
        return Inventory(tuple(gpu for gpu in usable if gpu.architecture == usable[0].architecture), notes=found.notes)

    def occupants(self, gpu: Gpu) -> Sequence[Occupant]:
        """The processes that use the GPU's card at this moment, those of other users too.

        A busy card whose processes cannot be seen (another container's) has one without a number.
        """
        return self.state(gpu).occupants

    def state(self, gpu: Gpu) -> GpuState:
        """What the GPU does at this moment, and :meth:`occupants`."""
        if gpu.kind == "rocm":
            # A neighbouring partition shares clocks, power and memory: it counts.
            on_card = [node for node in amd_sysfs.kfd_nodes(self.root) if node.card == gpu.card]
            found = {o.pid: o for node in on_card for o in amd_sysfs.occupants(self.root, node.gpu_id)}
            seen = [amd_sysfs.readings(amd_sysfs.pci_folder(self.root, node)) for node in on_card[:1]]
        else:
            fresh = [g for g in self._look("cuda").gpus if g.uuid == gpu.uuid]
            found = {o.pid: o for g in fresh for o in g.occupants}
            seen = [g.readings for g in fresh]
        readings = seen[0] if seen else Readings()
        if not found and (readings.busy_percent or 0) >= BUSY_PERCENT:
            unseen = Occupant(0, f"a process that cannot be seen from here ({readings.busy_percent} % busy)")
            return GpuState(readings, (unseen,))
        return GpuState(readings, tuple(found.values()))

    def all(self) -> dict[str, Inventory]:
        """Every kind."""
        return {kind: self.inventory(kind) for kind in KINDS}
