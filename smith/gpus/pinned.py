"""A sandbox whose programs see exactly one GPU.

Two things make it so: the variable by which the driver's runtime hides the others, and (where the sandbox has a
``/dev`` of its own) that only this GPU's device nodes are there. A recipe cannot undo either: what it says about
visible devices is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from smith.gpus.base import Gpu, GpuState
from smith.gpus.lease import Lease
from smith.sandbox.base import Bind, Command, Ended, Sandbox

DROPPED = frozenset(
    {
        "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
        "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
        # These make a GPU claim to be another one, or kernels run without one.
        "HSA_OVERRIDE_GFX_VERSION", "TRITON_INTERPRET",
    }
)  # fmt: skip
ROCM = Path("/opt/rocm")


def variables(gpu: Gpu, *, alone: bool) -> dict[str, str]:
    """What makes ``gpu`` the only visible one. ``alone``: no other GPU's device node is in sight.

    HIP counts only what ROCR shows and so needs no variable of its own; a second one would choose among the chosen.
    """
    if gpu.kind == "rocm":
        # The runtime leaves out GPUs whose render node is absent, and numbers the others from 0.
        return {"ROCR_VISIBLE_DEVICES": gpu.uuid or ("0" if alone else str(gpu.index))}
    return {"CUDA_VISIBLE_DEVICES": gpu.uuid or ("0" if alone else str(gpu.index)), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@dataclass(frozen=True)
class PinnedSandbox:
    """``inner`` with one leased GPU. ``root`` is where the machine's own ``/`` is seen (tests show another)."""

    inner: Sandbox
    lease: Lease
    look: Callable[[], GpuState]
    """What the GPU does now."""
    root: Path = Path("/")

    @property
    def name(self) -> str:
        """As of the inner one: what isolates is the same."""
        return self.inner.name

    @property
    def remaps(self) -> bool:
        """As of the inner one."""
        return self.inner.remaps

    @property
    def gpu(self) -> Gpu:
        """The GPU that is seen."""
        return self.lease.gpu

    def check(self) -> str | None:
        """As of the inner one."""
        return self.inner.check()

    def run(self, command: Command) -> Ended:
        """As :meth:`Sandbox.run`, with the GPU. Drivers map far more than they use, so no process has a limit of its
        own for memory; that of the whole tree stays."""
        return self.inner.run(
            replace(
                command,
                env=self._env(command.env),
                binds=[*command.binds, *self._binds()],
                limits=replace(command.limits, each_process=False),
            )
        )

    def _env(self, env: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in env.items() if name not in DROPPED}
        if ROCM in self.gpu.folders:
            # For builds that look for hipcc, and programs that ask rocminfo.
            kept = {"ROCM_PATH": str(ROCM), **kept}
            if path := kept.get("PATH"):
                kept["PATH"] = f"{path}:{ROCM}/bin"
        return kept | variables(self.gpu, alone=self.inner.remaps)

    def _binds(self) -> list[Bind]:
        if not self.inner.remaps:
            return []
        seen = [path for path in (*self.gpu.folders, *self.gpu.nodes) if not path.is_relative_to("/usr")]
        return [Bind(self.root / path.relative_to("/"), str(path)) for path in seen]
