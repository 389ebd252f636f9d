"""AMD GPUs, found in files laid out as the kernel does and in recorded outputs (see gpu_recordings)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from gpu_recordings import (
    AMD_SMI_STATIC,
    AMD_SMI_STATIC_7,
    AMD_SMI_VERSION,
    ROCMINFO,
    SERIALS,
    amd_machine,
    machine,
    occupy,
    properties,
    write,
)
from hypothesis import given
from hypothesis import strategies as st

from smith.gpus import amd_tools
from smith.gpus.amd_sysfs import KfdNode, kfd_nodes, occupants, readings
from smith.gpus.base import Outcome, number

NODES = "sys/devices/virtual/kfd/kfd/topology/nodes"


def test_gpus_are_found_by_the_kernel_alone(tmp_path: Path) -> None:
    found = machine(amd_machine(tmp_path)).inventory("rocm")
    first, second = found.gpus
    assert (first.architecture, first.device, first.card, first.index) == ("gfx942", "rocm:gfx942", "0000:0c:00", 0)
    assert (first.uuid, second.uuid) == ("GPU-4b2c9a6f00d1e2f3", "GPU-91a80c4d5e6f7081")
    assert [str(path) for path in second.nodes] == ["/dev/kfd", "/dev/dri/renderD136"]
    assert (first.driver, first.toolkit, first.problem, found.reason) == ("amdgpu 6.12.12", "6.4.0", "", "")
    now = first.readings
    assert (now.temperature_c, now.power_w, now.power_limit_w) == (41.0, 138.0, 750.0)
    assert (now.clock_mhz, now.clock_limit_mhz, now.memory_clock_mhz) == (132, 2100, 900)
    assert (now.busy_percent, now.memory_total_bytes) == (0, 206141652992)
    assert now.policy == "performance level auto, partition SPX/NPS1"


def test_programs_of_rocm_add_names(tmp_path: Path) -> None:
    root = amd_machine(tmp_path)
    assert machine(root).inventory("rocm").gpus[0].name == ""
    by_info = machine(root, {"rocminfo": ROCMINFO}).inventory("rocm")
    assert [gpu.name for gpu in by_info.gpus] == ["AMD Instinct MI300X"] * 2
    outputs = {"amd-smi static --json": AMD_SMI_STATIC, "amd-smi version --json": AMD_SMI_VERSION}
    by_smi = machine(root, outputs).inventory("rocm").gpus
    assert [gpu.name for gpu in by_smi] == ["AMD Instinct MI300X", ""]
    assert str(by_smi[0]) == "AMD Instinct MI300X (gfx942, 0000:0c:00)"
    shutil.rmtree(root / "opt/rocm-6.4.0")
    assert machine(root, outputs).inventory("rocm").gpus[0].toolkit == "6.4.0"


def test_what_rocminfo_says_is_read_by_agent() -> None:
    first, second = amd_tools.agents(ROCMINFO)
    assert first == amd_tools.Agent("gfx942", "AMD Instinct MI300X", "GPU-4b2c9a6f00d1e2f3", "0000:0c:00")
    assert second.card == "0000:20:00"
    without = amd_tools.agents(ROCMINFO.replace("GPU-91a80c4d5e6f7081", "GPU-XX"))
    assert without[1].uuid == ""
    assert amd_tools.agents("hsa api call failure at: rocminfo.cc:1282\n") == []


def test_both_shapes_of_amd_smi_are_read() -> None:
    assert amd_tools.static(AMD_SMI_STATIC)["0000:0c:00"] == amd_tools.Told(
        "AMD Instinct MI300X", "amdgpu 6.12.12", "gfx942", 750.0
    )
    assert amd_tools.static(AMD_SMI_STATIC_7)["0001:0c:00"] == amd_tools.Told("", "amdgpu 6.14.14", "gfx950", 1400.0)


@given(st.one_of(st.text(), st.recursive(st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["gpu_data", "asic", "bus", "bdf", "limit", "driver", "ppt0"]), x)).map(json.dumps)))  # fmt: skip  # noqa: E501
def test_no_output_of_a_program_is_an_error(text: str) -> None:
    amd_tools.static(text)
    amd_tools.rocm_version(text)
    amd_tools.agents(text)


@pytest.mark.parametrize(
    ("version", "name"),
    [(90402, "gfx942"), (90010, "gfx90a"), (90500, "gfx950"), (110000, "gfx1100"), (120001, "gfx1201")],
)
def test_the_kernels_number_of_an_architecture(version: int, name: str) -> None:
    assert KfdNode(1, 7, {"gfx_target_version": version}).architecture == name


def test_processors_and_hidden_gpus_are_no_gpus(tmp_path: Path) -> None:
    root = amd_machine(tmp_path)
    assert [node.number for node in kfd_nodes(root)] == [1, 2]
    # What a container was not given answers with an error; an empty file is as near as a folder comes.
    write(root / NODES / "2/gpu_id", "")
    assert [node.number for node in kfd_nodes(root)] == [1]


def test_each_lack_has_its_own_words(tmp_path: Path) -> None:
    bare = machine(tmp_path / "bare").matching("rocm")
    assert "there is no /dev/kfd" in bare.reason
    root = amd_machine(tmp_path / "amd")
    closed = machine(root)
    object.__setattr__(closed, "may_use", lambda path: path.name != "kfd")
    assert "not readable and writable for this user" in closed.matching("rocm").reason
    shut = machine(root)
    object.__setattr__(shut, "may_use", lambda path: path.name == "kfd")
    assert "/dev/dri/renderD128 is not readable" in shut.matching("rocm").reason
    other = machine(root).matching("rocm:gfx90a")
    assert other.reason == "no AMD GPU of this architecture: asked gfx90a, here gfx942"
    (root / "dev/dri/renderD128").unlink()
    assert [gpu.index for gpu in machine(root).matching("rocm:gfx942").gpus] == [1]
    shutil.rmtree(root / NODES)
    lost = machine(root, {"rocminfo": ROCMINFO}).matching("rocm")
    assert lost.reason.endswith("lists no GPU that this machine may use; rocminfo sees gfx942, but not where")


def test_partitions_that_share_a_serial_number_are_told_by_their_index(tmp_path: Path) -> None:
    root = amd_machine(tmp_path)
    write(root / NODES / "2/properties", properties(location_id=3073, drm_render_minor=136, unique_id=SERIALS[0]))
    gpus = machine(root).inventory("rocm").gpus
    assert [(gpu.uuid, gpu.index, gpu.card) for gpu in gpus] == [("", 0, "0000:0c:00"), ("", 1, "0000:0c:00")]


def test_who_is_on_a_gpu(tmp_path: Path) -> None:
    root = amd_machine(tmp_path)
    here = machine(root)
    gpu = here.inventory("rocm").gpus[0]
    assert here.occupants(gpu) == ()
    occupy(root, 4711, 45412, 0, "amd-smi")  # it only looks
    occupy(root, 4712, 61002, 1 << 30)  # on the other one
    assert here.occupants(gpu) == ()
    occupy(root, 4713, 45412, 5 << 20, "train")
    write(root / "sys/devices/virtual/kfd/kfd/proc/4714/queues/0/gpuid", "45412\n")
    assert [str(o) for o in here.occupants(gpu)] == ["process 4713 (train)", "process 4714"]
    assert occupants(root, 45412)[0].memory_bytes == 5 << 20


def test_a_busy_gpu_without_visible_processes_is_in_use(tmp_path: Path) -> None:
    root = amd_machine(tmp_path)
    here = machine(root)
    gpu = here.inventory("rocm").gpus[0]
    write(root / "sys/devices/pci0000:00/0000:0c:00.0/gpu_busy_percent", "97\n")
    assert [str(o) for o in here.occupants(gpu)] == ["a process that cannot be seen from here (97 % busy)"]


def test_files_that_are_missing_or_odd_are_not_known(tmp_path: Path) -> None:
    assert readings(tmp_path).busy_percent is None
    write(tmp_path / "gpu_busy_percent", "")
    write(tmp_path / "pp_dpm_sclk", "\n")
    write(tmp_path / "hwmon/hwmon0/power1_average", "n/a\n")
    odd = readings(tmp_path)
    assert (odd.busy_percent, odd.clock_mhz, odd.power_w, odd.policy) == (None, None, None, "")
    assert number("[Not Supported]") is None and number("[N/A]") is None and number("71.32") == 71.32


def test_programs_that_hang_or_fail_are_done_without(tmp_path: Path) -> None:
    outputs = {"rocminfo": Outcome(None, "no answer within 20 s"), "amd-smi": Outcome(255, "ERROR: no driver")}
    assert len(machine(amd_machine(tmp_path), outputs).inventory("rocm").gpus) == 2
