"""The interpreter device, in child processes: its patches belong to a whole process.

The checks themselves are in ``installed/check_*.py``, which pytest runs in one child with the plug-in loaded; each of
them is one test here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "installed"
ROOT = Path(__file__).parents[2]
OTHER_PYTHON = "SMITH_TEST_TRITON_34"

PRELUDE = """
import sys, types
import torch
module = types.ModuleType("made_by_prelude")
module.name, module.cuda = __name__, torch.cuda.is_available()
sys.modules["made_by_prelude"] = module
"""

WITHOUT_REMEDY = {
    "run_float_argument": "'float' object has no attribute 'to'",
    "run_loop_variable": "'int' object has no attribute 'to'",
    "run_library_function": "NoneType",
    "run_integer_mask": "mask has unsupported dtype",
    "run_wrong_assumption": "Assume failed",
    "run_aliased_builtin": "Did you forget to add @triton.jit ?",
    "run_bfloat16_sum": "value ",
    "run_unknown_key": "key contains names that are not kernel arguments",
    "run_driver": "0 active drivers ([]). There should only be one.",
    "run_cuda_factory": "Torch not compiled with CUDA enabled",
    "run_cuda_available": "value False",
    "run_cuda_generator": "CUDA",
    "run_integer_histc": "not implemented for 'Long'",
    "run_module_cuda": "Torch not compiled with CUDA enabled",
    "run_stream": "CUDA",
    "run_memory": "_cuda_resetPeakMemoryStats",
}
"""What a plain interpreter says: the texts by which the symptoms were first met."""


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SMITH_", "TRITON_", "PYTEST_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **more}


def checks(python: str, folder: Path, *selected: str) -> dict[str, str]:
    """Outcome of every check by name: an empty string, or why it did not pass."""
    prelude = folder / "prelude.py"
    prelude.write_text(PRELUDE)
    report = folder / "report.xml"
    done = subprocess.run(
        [
            python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "smith.device.interpreter.plugin",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
            "-o",
            "python_files=check_*.py",
            "--rootdir",
            str(HERE),
            f"--junitxml={report}",
            *selected,
        ],
        cwd=HERE,
        env=environment(
            SMITH_DEVICE="interpreter:gfx942", SMITH_PRELUDE=str(prelude), HYPOTHESIS_STORAGE_DIRECTORY=str(folder)
        ),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if not report.exists():
        pytest.fail(f"the child wrote no report:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    outcomes: dict[str, str] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        troubles = [f"{child.tag}: {child.get('message')}\n{child.text}" for child in case if child.tag != "properties"]
        outcomes[f"{case.get('classname')}::{case.get('name')}"] = "\n".join(troubles)
    return outcomes


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return checks(sys.executable, tmp_path_factory.mktemp("checks"))


@pytest.mark.parametrize("file", ["check_symptoms", "check_narrow"])
def test_every_check_passes_with_the_device_installed(file: str, outcomes: dict[str, str]) -> None:
    ran = {name: trouble for name, trouble in outcomes.items() if name.startswith(f"{file}::")}
    assert len(ran) > 20
    assert {name: trouble for name, trouble in ran.items() if trouble} == {}


@pytest.fixture(scope="module")
def plain() -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "without_remedy.py"],
        cwd=HERE,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", sorted(WITHOUT_REMEDY))
def test_symptom_without_and_with_its_remedy(name: str, plain: dict[str, str], outcomes: dict[str, str]) -> None:
    assert WITHOUT_REMEDY[name] in plain[name]
    mended = [trouble for check, trouble in outcomes.items() if f"test_symptom[{name}-" in check]
    assert mended == [""]


def test_bfloat16_is_silently_wrong_without_the_remedy(plain: dict[str, str]) -> None:
    assert plain["run_bfloat16_sum"] != "value [3.5, 3.5, 3.5, 3.5]"


def test_the_same_checks_pass_with_triton_3_4(tmp_path: Path) -> None:
    python = os.environ.get(OTHER_PYTHON)
    if not python:
        pytest.skip(f"{OTHER_PYTHON} is not set: the path of a Python that has Triton 3.4")
    assert {name: trouble for name, trouble in checks(python, tmp_path).items() if trouble} == {}


def child(script: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=HERE,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_strict_assumption_is_an_error_and_the_target_is_the_asked_one() -> None:
    done = child(
        "import smith.device.interpreter.plugin, torch, kernels\n"
        "print(torch.cuda.get_device_capability(), torch.version.cuda)\nkernels.run_wrong_assumption()",
        SMITH_DEVICE="interpreter:sm_90",
        SMITH_STRICT_ASSUME="1",
    )
    assert done.stdout.startswith("(9, 0) 12")
    assert "Assume failed" in done.stderr


def test_scipy_is_not_needed() -> None:
    done = child(
        "import sys; sys.modules['scipy'] = None\nimport smith.device.interpreter.plugin, kernels\n"
        "print(kernels.run_library_function())"
    )
    assert done.stdout.strip() == "0.4621", done.stderr


def test_importing_the_package_imports_neither_torch_nor_triton() -> None:
    done = child(
        "import smith.device.interpreter, smith.device.probe, sys\n"
        "print(sorted({'torch', 'triton', 'numpy', 'pydantic'} & set(sys.modules)))"
    )
    assert done.stdout.strip() == "[]"


def test_another_kind_of_device_is_refused() -> None:
    done = child("import smith.device.interpreter.plugin", SMITH_DEVICE="rocm:gfx942")
    assert "does not name an interpreter device" in done.stderr


def test_installing_after_a_compiling_triton_is_an_error() -> None:
    done = child("import triton, triton.language\nimport smith.device.interpreter as i\ni.install('gfx942')")
    assert "imported in compile mode" in done.stderr
