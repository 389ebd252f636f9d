"""What the machine can prove, told without importing what is asked about."""

from __future__ import annotations

from pathlib import Path

from smith.device.probe import DeviceFact, probe
from smith.gpus.base import Outcome
from smith.gpus.machine import Machine
from tests.gpus.gpu_recordings import NVIDIA, ROCMINFO, amd_machine, machine, nvidia_machine


def facts(root: Path, programs: dict[str, str | Outcome] | None = None) -> dict[str, DeviceFact]:
    return {fact.name: fact for fact in probe(machine(root, programs))}


def test_a_bare_machine_says_what_is_missing(tmp_path: Path) -> None:
    bare = facts(tmp_path)
    assert list(bare) == [
        "interpreter",
        "compile",
        "cpu",
        "rocm",
        "cuda",
        "c-compiler",
        "bubblewrap",
        "clang-amdgpu",
    ]
    assert not any(bare[name].available for name in ("cpu", "rocm", "cuda", "bubblewrap", "clang-amdgpu"))
    assert "nvidia-smi" in bare["cuda"].reason and "/dev/kfd" in bare["rocm"].reason
    assert all(fact.reason for fact in bare.values())


def test_programs_are_believed_only_when_they_work(tmp_path: Path) -> None:
    broken = facts(
        tmp_path,
        {
            "bwrap": Outcome(1, "bwrap: No permissions\n"),
            "nvidia-smi": Outcome(9, "no driver"),
            "cc": Outcome(1, ""),
            "clang": Outcome(0, "x86-64"),
        },
    )
    assert broken["bubblewrap"].reason == "bwrap does not work here: bwrap: No permissions"
    assert not broken["cuda"].available
    assert broken["c-compiler"].details == {"path": "/opt/bin/clang"}
    assert not broken["clang-amdgpu"].available


def test_devices_and_compilers_name_their_architectures(tmp_path: Path) -> None:
    root = nvidia_machine(amd_machine(tmp_path))
    found = facts(root, {**NVIDIA, "rocminfo": ROCMINFO, "amdclang": "amdgcn - AMD GCN GPUs", "bwrap": ""})
    assert found["rocm"].available and found["cuda"].available
    assert found["rocm"].details["architectures"] == "gfx942"
    assert found["rocm"].details["gpus"].startswith("AMD Instinct MI300X (gfx942, 0000:0c:00); AMD")
    assert found["cuda"].details["architectures"] == "sm_90"
    assert found["clang-amdgpu"].available and found["bubblewrap"].available


def test_what_was_never_run_says_so(tmp_path: Path) -> None:
    for found in (facts(tmp_path / "bare"), facts(amd_machine(tmp_path / "amd"))):
        assert found["rocm"].details["proved"].endswith("never run on an AMD GPU by us")
        assert found["cuda"].details["proved"].endswith("never run on an NVIDIA GPU by us")


def test_a_gpu_that_this_user_cannot_use_is_no_proof(tmp_path: Path) -> None:
    root = amd_machine(tmp_path, second=False)
    (root / "dev/dri/renderD128").unlink()
    rocm = facts(root)["rocm"]
    assert not rocm.available
    assert "there is no /dev/dri/renderD128" in rocm.reason
    assert rocm.details["architectures"] == "gfx942"


def test_this_machine_answers() -> None:
    by_name = {fact.name: fact for fact in probe(Machine())}
    assert by_name["interpreter"].available
    assert "amd" in by_name["compile"].details["backends"]
    assert {"gfx942", "gfx950"} <= set(by_name["compile"].details["targets"].split())
    assert "gfx942" in by_name["compile"].reason
