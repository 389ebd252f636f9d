"""Which device a task gets on which machine, and in what words one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from smith.errors import BadInput
from smith.records.task import SmithMetadata
from smith.validate.devices import Choice, choose_device
from tests.gpus.gpu_recordings import NVIDIA, amd_machine, machine, nvidia_machine

TRITON, HIP = ("interpreter", "rocm", "cuda"), ("rocm",)


def spec(devices: tuple[str, ...], language: str = "triton") -> SmithMetadata:
    return SmithMetadata.model_construct(devices=devices, languages=(language,))


def test_a_machine_with_an_amd_gpu(tmp_path: Path) -> None:
    here = machine(amd_machine(tmp_path))
    assert choose_device("rocm", spec(TRITON), here) == Choice("rocm:gfx942")
    assert choose_device("rocm:gfx942", spec(TRITON), here) == Choice("rocm:gfx942")
    assert choose_device("auto", spec(HIP, "hip"), here) == Choice("rocm:gfx942")
    # What can be proved anywhere comes first; a GPU is asked for by name.
    assert choose_device("auto", spec(TRITON), here) == Choice("interpreter:gfx942")
    other = choose_device("rocm:gfx90a", spec(TRITON), here)
    assert other == Choice("rocm:gfx90a", "no AMD GPU of this architecture: asked gfx90a, here gfx942")
    assert "no NVIDIA GPU" in (choose_device("cuda", spec(TRITON), here).refusal or "")
    assert choose_device("auto", spec(("cuda", "rocm"), "cuda"), here) == Choice("rocm:gfx942")


def test_a_machine_with_an_nvidia_gpu(tmp_path: Path) -> None:
    here = machine(nvidia_machine(tmp_path), NVIDIA)
    assert choose_device("cuda:sm_90", spec(TRITON), here) == Choice("cuda:sm_90")
    assert choose_device("auto", spec(("cuda",), "cuda"), here) == Choice("cuda:sm_90")
    refused = choose_device("cuda", spec(HIP, "hip"), here)
    assert refused.refusal == "kernels in hip cannot be run on cuda; it needs rocm"


def test_a_machine_without_any(tmp_path: Path) -> None:
    here = machine(tmp_path)
    choice = choose_device("auto", spec(HIP, "hip"), here)
    assert choice.name == "rocm"
    assert choice.refusal is not None and choice.refusal.startswith("no AMD GPU: there is no /dev/kfd")
    assert choose_device("interpreter:gfx950", spec(TRITON), here) == Choice("interpreter:gfx950")
    assert choose_device("cpu", spec(("cpu",), "c"), here) == Choice("cpu")


@pytest.mark.parametrize("asked", ["gpu", "rocm:", "rocm:sm_90", "cuda:gfx942", "cpu:gfx942", "interpreter:gfx1", ":x"])
def test_what_is_no_device(tmp_path: Path, asked: str) -> None:
    with pytest.raises(BadInput):
        choose_device(asked, spec(TRITON), machine(tmp_path))
