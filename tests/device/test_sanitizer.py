"""The sanitizer, in child processes: its patches belong to a whole process.

The checks are in ``sanitized/check_*.py``, which pytest runs in one child with the device's plug-in loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "sanitized"
ROOT = Path(__file__).parents[2]
OTHER_PYTHON = "SMITH_TEST_TRITON_34"


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SMITH_", "TRITON_", "PYTEST_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def checks(python: str, folder: Path) -> dict[str, str]:
    """Outcome of every check by name: an empty string, or why it did not pass."""
    report = folder / "report.xml"
    command = [
        python, "-m", "pytest", "-q", "-p", "smith.device.interpreter.plugin", "-p", "no:cacheprovider",
        "-o", "addopts=", "-o", "python_files=check_*.py", "--rootdir", str(HERE), f"--junitxml={report}",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=HERE, env=environment(), capture_output=True, text=True, timeout=240, check=False
    )
    if not report.exists():
        pytest.fail(f"the child wrote no report:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    outcomes: dict[str, str] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        troubles = [f"{child.tag}: {child.get('message')}\n{child.text}" for child in case if child.tag != "properties"]
        outcomes[f"{case.get('classname')}::{case.get('name')}"] = "\n".join(troubles)
    return outcomes


def failed(outcomes: dict[str, str]) -> dict[str, str]:
    assert sum(1 for name in outcomes if name.startswith("check_planted::")) > 45
    assert sum(1 for name in outcomes if name.startswith("check_clean::")) > 30
    return {name: trouble for name, trouble in outcomes.items() if trouble}


def test_planted_faults_are_found_and_clean_kernels_are_not_blamed(tmp_path: Path) -> None:
    assert failed(checks(sys.executable, tmp_path)) == {}


def test_the_same_with_triton_3_4(tmp_path: Path) -> None:
    python = os.environ.get(OTHER_PYTHON)
    if not python:
        pytest.skip(f"{OTHER_PYTHON} is not set: the path of a Python that has Triton 3.4")
    assert failed(checks(python, tmp_path)) == {}


def child(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=HERE, env=environment(), capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    return done.stdout.strip() or done.stderr


def test_without_being_asked_for_nothing_of_it_is_there() -> None:
    said = child(
        "import smith.device.interpreter.plugin, sys, torch\n"
        "from triton.runtime import interpreter as i\n"
        "print([m for m in sys.modules if 'sanitizer' in m],"
        " any('sanitizer' in f.__code__.co_filename for f in vars(i.InterpreterBuilder).values()"
        " if hasattr(f, '__code__')))"
    )
    assert said == "[] False"


def test_it_needs_the_device() -> None:
    said = child("import os; os.environ['TRITON_INTERPRET'] = '1'\n"
                 "from smith.device.interpreter import sanitizer; sanitizer.install()")  # fmt: skip
    assert "the interpreter device, which is not installed" in said
