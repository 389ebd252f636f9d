"""NVIDIA GPUs, in recorded outputs (see gpu_recordings) and through a module with the names of nvidia-ml-py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gpu_recordings import NVIDIA, NVIDIA_GPUS, machine, node, nvidia_machine

from smith.gpus import nvml
from smith.gpus.base import Outcome

FIRST, SECOND = "GPU-8f6b0c9e-3a51-4b6e-9a27-0d6d6f1c2b3a", "GPU-11d2a7c4-55f0-4f0e-8a3c-77aa11bb22cc"


def test_nvidia_smi_tells_all(tmp_path: Path) -> None:
    found = machine(nvidia_machine(tmp_path), NVIDIA).matching("cuda:sm_90")
    first, second = found.gpus
    assert (first.device, first.uuid, first.card, first.toolkit) == ("cuda:sm_90", FIRST, "0000:0f:00", "12.8")
    # The number of the node is the driver's, not the index.
    assert [str(path) for path in first.nodes] == ["/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"]
    assert (second.readings.power_w, second.readings.busy_percent, second.readings.temperature_c) == (None, 98, 62.0)
    assert first.readings.memory_total_bytes == 81559 << 20
    assert [str(o) for o in second.occupants] == ["process 4711 (python3.12)"]
    assert first.readings.policy == "persistence mode enabled"


def test_who_is_on_a_gpu_is_asked_anew(tmp_path: Path) -> None:
    outputs = dict(NVIDIA)
    here = machine(nvidia_machine(tmp_path), outputs)
    first, second = here.inventory("cuda").gpus
    assert here.occupants(first) == ()
    assert [o.pid for o in here.occupants(second)] == [4711]
    outputs["nvidia-smi --query-compute-apps"] = ""
    outputs["nvidia-smi --query-gpu"] = NVIDIA_GPUS.replace(" 98,", " 0,")
    assert here.occupants(second) == ()


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({}, "the package nvidia-ml-py is not installed; nvidia-smi is not on PATH"),
        (
            {"nvidia-smi": Outcome(9, "NVIDIA-SMI has failed\nbecause")},
            "nvidia-smi found no GPU: NVIDIA-SMI has failed",
        ),
        ({"nvidia-smi": "No devices were found\n"}, "answered in a form that is not known"),
    ],
)
def test_each_lack_has_its_own_words(tmp_path: Path, outputs: Any, words: str) -> None:
    assert words in machine(tmp_path, outputs).matching("cuda").reason


def test_another_architecture_and_a_missing_node(tmp_path: Path) -> None:
    root = nvidia_machine(tmp_path)
    assert machine(root, NVIDIA).matching("cuda:sm_80").reason == (
        "no NVIDIA GPU of this architecture: asked sm_80, here sm_90"
    )
    (root / "dev/nvidia-uvm").unlink()
    assert machine(root, NVIDIA).matching("cuda").reason.endswith("there is no /dev/nvidia-uvm")


class Nvml:
    """The documented functions of NVML with the answers of one H200 and one GPU that knows little."""

    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2

    class NVMLError(Exception):
        pass

    @dataclass
    class Answer:
        total: int = 150 << 30
        used: int = 1 << 30
        gpu: int = 3
        pid: int = 4711
        usedGpuMemory: int | None = None
        busId: bytes | str = b"00000000:19:00.0"

    def __init__(self) -> None:
        self.running = 0

    def nvmlInit(self) -> None:
        self.running += 1

    def nvmlShutdown(self) -> None:
        self.running -= 1

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.65.06"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:
        return (9, 0)

    def nvmlDeviceGetMinorNumber(self, handle: int) -> int:
        return 7 - handle

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "NVIDIA H200"

    def nvmlDeviceGetPciInfo(self, handle: int) -> Answer:
        return self.Answer()

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlSystemGetProcessName(self, pid: int) -> bytes:
        return b"/opt/venv/bin/python"

    def __getattr__(self, name: str) -> Any:
        """Whatever else is asked of a GPU: the second one supports none of it."""

        def ask(handle: int, *_: int) -> Any:
            if handle == 1:
                raise self.NVMLError("Not Supported")
            if name == "nvmlDeviceGetComputeRunningProcesses":
                return [self.Answer()]
            scalars = {"nvmlDeviceGetPowerUsage": 120_500, "nvmlDeviceGetEnforcedPowerLimit": 700_000}
            structures = ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates")
            return self.Answer() if name in structures else scalars.get(name, 1)

        return ask


def test_nvml_is_asked_first(tmp_path: Path) -> None:
    root = tmp_path
    for name in ("nvidiactl", "nvidia-uvm", "nvidia6", "nvidia7"):
        node(root / "dev" / name)
    module = Nvml()
    here = machine(root, NVIDIA, module)
    first, second = here.inventory("cuda").gpus
    assert (first.name, first.toolkit, first.driver, first.card) == ("NVIDIA H200", "13.0", "580.65.06", "0000:19:00")
    assert (first.readings.power_w, first.readings.power_limit_w, first.readings.busy_percent) == (120.5, 700.0, 3)
    assert str(first.nodes[0]) == "/dev/nvidia7"
    assert [str(o) for o in first.occupants] == ["process 4711 (python)"]
    assert second.readings == type(second.readings)() and second.occupants == ()
    assert module.running == 0


def test_the_real_package_has_every_name_and_says_that_there_is_no_driver(tmp_path: Path) -> None:
    module = pytest.importorskip("pynvml", reason="the extra `cuda` is not installed")
    assert module is nvml.load()
    used = set(re.findall(r"\bnvml\.(\w+)", Path(nvml.__file__).read_text()))
    assert len(used) > 20
    assert [name for name in sorted(used) if not hasattr(module, name)] == []
    if not Path("/dev/nvidiactl").exists():
        assert "NVML" in nvml.inventory(tmp_path, module).reason
