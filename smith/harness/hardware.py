"""What a GPU run stands on: the leased GPU as its driver tells, and the torch of the environment as it sees it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from smith.gpus.base import VENDORS
from smith.gpus.pinned import PinnedSandbox
from smith.harness.stage import Stage
from smith.records.hardware import UsedHardware
from smith.sandbox.base import Limits

WALL_S = 240.0
"""Importing a ROCm build of torch from a cold disk, and the first start of the runtime, may take minutes."""


@dataclass(frozen=True)
class Unfit:
    """Why tests of this environment cannot run on the GPU."""

    reason: str


def look(stage: Stage) -> UsedHardware | Unfit:
    """Start torch in the sandbox once and compare what it sees with what was leased."""
    assert isinstance(stage.sandbox, PinnedSandbox)
    done = stage.run(stage.module("say_device"), Limits(wall_s=WALL_S))
    lines = done.stdout.text.strip().splitlines()
    try:
        facts = json.loads(lines[-1]) if lines else {}
    except ValueError:
        facts = {}
    if not done.ok or not facts:
        words = done.stderr.text.strip().splitlines()
        return Unfit(f"torch cannot be started on {stage.device} ({done.ending}){': ' + words[-1] if words else ''}")
    return judge(facts, stage.sandbox)


def judge(facts: dict[str, Any], sandbox: PinnedSandbox) -> UsedHardware | Unfit:
    """The record of the hardware, or why what torch sees is not the GPU that was leased."""
    gpu, lease = sandbox.gpu, sandbox.lease
    wanted = "hip" if gpu.kind == "rocm" else "cuda"
    error = f" ({facts['error']})" if facts.get("error") else ""
    if facts.get("torch") is None:
        return Unfit(f"there is no torch in this environment{error}")
    if not facts.get(wanted):
        has = "HIP" if wanted == "hip" else "CUDA"
        hint = "layers never replace torch: install the right build for the Python that smith runs in"
        return Unfit(f"torch {facts['torch']} of this environment is built without {has}; {hint}")
    seen = facts.get("gpus", [])
    if not seen:
        return Unfit(f"torch {facts['torch']} sees no {VENDORS[gpu.kind]} GPU in the sandbox{error}")
    if len(seen) > 1:
        return Unfit(f"torch sees {len(seen)} GPUs where one was leased: the pinning does not hold here")
    if seen[0]["architecture"] != gpu.architecture:
        return Unfit(f"torch sees {seen[0]['architecture']} where {gpu.architecture} was leased")
    if not facts.get("works"):
        return Unfit(f"torch {facts['torch']} cannot compute on {gpu.architecture}{error}")
    return UsedHardware(
        architecture=gpu.architecture,
        name=gpu.name or seen[0]["name"],
        driver=gpu.driver,
        toolkit=gpu.toolkit,
        torch=facts["torch"],
        torch_toolkit=f"{wanted} {facts[wanted]}",
        triton=facts.get("triton") or "",
        memory_bytes=gpu.readings.memory_total_bytes,
        clock_limit_mhz=gpu.readings.clock_limit_mhz,
        power_limit_w=gpu.readings.power_limit_w,
        policy=gpu.readings.policy,
        waited_ms=lease.waited_ms,
        held_ms=lease.held_ms,
    )
