"""What the machine can prove, told without importing what is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from smith.device.probe import DeviceFact, Outcome, probe


def facts(programs: dict[str, Outcome], kfd: Path = Path("/nonexistent/kfd")) -> dict[str, DeviceFact]:
    def which(name: str) -> str | None:
        return name if name in programs else None

    def run(argv: Sequence[str]) -> Outcome:
        return programs[argv[0]]

    return {fact.name: fact for fact in probe(which=which, run=run, kfd=kfd)}


def test_a_bare_machine_says_what_is_missing() -> None:
    bare = facts({})
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
    assert "nvidia-smi" in bare["cuda"].reason
    assert all(fact.reason for fact in bare.values())


def test_programs_are_believed_only_when_they_work() -> None:
    broken = facts(
        {
            "bwrap": Outcome(1, "bwrap: No permissions\n"),
            "nvidia-smi": Outcome(9, "no driver"),
            "cc": Outcome(1, ""),
            "clang": Outcome(0, "x86-64"),
        }
    )
    assert broken["bubblewrap"].reason == "bwrap does not work here: bwrap: No permissions"
    assert not broken["cuda"].available
    assert broken["c-compiler"].details == {"path": "clang"}
    assert not broken["clang-amdgpu"].available


def test_devices_and_compilers_name_their_architectures(tmp_path: Path) -> None:
    kfd = tmp_path / "kfd"
    kfd.touch()
    found = facts(
        {
            "rocminfo": Outcome(0, "Name: gfx942\nName: gfx942\n"),
            "nvidia-smi": Outcome(0, "NVIDIA H200, 9.0\n"),
            "amdclang": Outcome(0, "amdgcn - AMD GCN GPUs"),
            "bwrap": Outcome(0, ""),
        },
        kfd,
    )
    assert found["rocm"].details == {"architectures": "gfx942"}
    assert found["cuda"].details["architectures"] == "sm_90"
    assert found["clang-amdgpu"].available and found["bubblewrap"].available


def test_a_device_file_without_an_architecture_is_no_device(tmp_path: Path) -> None:
    kfd = tmp_path / "kfd"
    kfd.touch()
    assert not facts({}, kfd)["rocm"].available


def test_this_machine_answers() -> None:
    by_name = {fact.name: fact for fact in probe()}
    assert by_name["interpreter"].available
    assert "amd" in by_name["compile"].details["backends"]
    assert {"gfx942", "gfx950"} <= set(by_name["compile"].details["targets"].split())
    assert "gfx942" in by_name["compile"].reason
