"""Tests of a tree run natively on a leased GPU; the device is a stand-in (see native_gpu), the rest is real."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness_bench import Bench
from native_gpu import DRIVER, HELPERS, KERNELS, TESTS

from smith.errors import Unavailable
from smith.gpus.base import Gpu, GpuState
from smith.gpus.lease import Lease, Leases
from smith.gpus.machine import Machine
from smith.gpus.pinned import PinnedSandbox
from smith.harness.hardware import Unfit, judge, look
from smith.harness.stage import Stage
from smith.records.recipe import Recipe
from smith.records.results import Outcome, TestResult
from tests.gpus.gpu_recordings import amd_machine, machine


@pytest.fixture
def amd(tmp_path: Path) -> Machine:
    return machine(amd_machine(tmp_path / "machine", second=False))


@pytest.fixture
def gpu_bench(bench: Bench, amd: Machine, tmp_path: Path) -> Iterator[Bench]:
    (tmp_path / "leases").mkdir()
    with Leases(tmp_path / "leases", amd.occupants).hold(amd.matching("rocm").gpus, purpose="test") as lease:
        yield replace(bench, sandbox=PinnedSandbox(bench.sandbox, lease, GpuState, amd.root), device="rocm:gfx942")


def run_all(bench: Bench) -> dict[str, TestResult]:
    for name, text in {"driver": DRIVER, "kernels": KERNELS, "helpers": HELPERS, "__init__": ""}.items():
        bench.write(f"lib/{name}.py", text)
    bench.write("tests/test_it.py", TESTS)
    bench.recipe = Recipe(repo="o/r", python_path=(".",), env={"TRITON_INTERPRET": "1", "ROCR_VISIBLE_DEVICES": "0"})
    ids = [i.id for i in bench.collect("tests/test_it.py").ids]
    assert len(ids) == 5
    done = bench.run(*ids, id_timeout_s=120, wall_s=240)
    assert done.complete, done
    return {name.partition("::")[2]: result for name, result in done.by_id().items()}


def test_tests_run_natively_and_launches_are_counted(gpu_bench: Bench) -> None:
    results = run_all(gpu_bench)
    assert {name: r.message for name, r in results.items() if r.outcome is not Outcome.PASSED} == {}
    assert results["test_two_launches"].launches == {
        "lib/kernels.py::add": 2,
        "lib/helpers.py::plus": 2,
        "lib/helpers.py::inner": 2,
    }
    for name in ("test_host_code_only", "test_a_refused_launch_is_none", "test_warming_up_is_no_launch"):
        assert results[name].launches == {}


def test_without_a_lease_nothing_runs_on_a_gpu(bench: Bench) -> None:
    bench.device = "rocm:gfx942"
    bench.write("test_one.py", "def test_it(): pass\n")
    with pytest.raises(Unavailable, match="only in a sandbox that holds a lease"):
        bench.run("test_one.py::test_it")


def test_torch_without_hip_is_no_rocm_device(gpu_bench: Bench) -> None:
    found = look(Stage(gpu_bench.sandbox, gpu_bench.place, gpu_bench.environment, gpu_bench.recipe, "rocm:gfx942"))
    assert isinstance(found, Unfit)
    assert "is built without HIP" in found.reason


FACTS: dict[str, Any] = {
    "torch": "2.9.0+rocm6.4",
    "hip": "6.4.43482",
    "cuda": None,
    "triton": "3.5.0",
    "gpus": [{"name": "AMD Instinct MI300X", "architecture": "gfx942"}],
    "error": "",
    "works": True,
}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"torch": None, "error": "torch: ImportError: libamdhip64.so.6"}, "no torch in this environment (torch: Imp"),
        ({"hip": None}, "torch 2.9.0+rocm6.4 of this environment is built without HIP"),
        ({"gpus": []}, "sees no AMD GPU in the sandbox"),
        ({"gpus": [{}, {}]}, "sees 2 GPUs where one was leased"),
        ({"gpus": [{"name": "x", "architecture": "gfx90a"}]}, "sees gfx90a where gfx942 was leased"),
        ({"works": False, "error": "torch: RuntimeError: invalid device function"}, "cannot compute on gfx942 (torch"),
    ],
)
def test_what_torch_sees_must_be_what_was_leased(amd: Machine, changed: dict[str, Any], words: str) -> None:
    found = judge({**FACTS, **changed}, of(amd.inventory("rocm").gpus[0]))
    assert isinstance(found, Unfit) and words in found.reason


def test_the_record_of_the_hardware(amd: Machine) -> None:
    found = judge(FACTS, of(amd.inventory("rocm").gpus[0]))
    assert not isinstance(found, Unfit)
    assert found.model_dump() == {
        "architecture": "gfx942",
        "name": "AMD Instinct MI300X",
        "driver": "amdgpu 6.12.12",
        "toolkit": "6.4.0",
        "torch": "2.9.0+rocm6.4",
        "torch_toolkit": "hip 6.4.43482",
        "triton": "3.5.0",
        "memory_bytes": 206141652992,
        "clock_limit_mhz": 2100,
        "power_limit_w": 750.0,
        "policy": "performance level auto, partition SPX/NPS1",
        "waited_ms": 20,
        "held_ms": 0,
    }


class Nowhere:
    """A sandbox that is never used."""

    name, remaps = "nowhere", True

    def check(self) -> str | None:
        return None

    def run(self, command: Any) -> Any:
        raise AssertionError


def of(gpu: Gpu) -> PinnedSandbox:
    return PinnedSandbox(Nowhere(), Lease(gpu, 20, 5.0, lambda: 5.0), GpuState)
