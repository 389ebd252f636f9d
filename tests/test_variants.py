"""Variants on their whole way, through the command line and in real sandboxes: validated, run, graded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smith.freeze.bundle import Store
from tests.conftest import new_data_repository
from tests.freeze.variant_worlds import TORCH_TRANSPOSE, TRITON_TRANSPOSE, patch_of

# The first test that needs them validates five tasks: minutes on a busy machine.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow]

NATIVE = "smith-lab__minikernels-60~author"
TRITON = "smith-lab__minikernels-53~author"
READ_TWICE = "smith-lab__minikernels-28~optimize"  # a Triton speed-up: nothing here can time it
PORT = "smith-lab__minikernels-20~port-triton"
HIP = "smith-lab__minikernels-8~port-hip"


def smith(store: Store, *args: str, check: int = 0) -> Any:
    """Run the command line; the parsed JSON where ``--json`` was asked for, else what it printed."""
    argv = [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), *args]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ}, timeout=1500)
    assert done.returncode == check, f"{args}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout) if "--json" in args and done.stdout else done.stdout + done.stderr


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> Store:
    """A data repository with a port that nobody has solved yet, and other variants."""
    store = new_data_repository(tmp_path_factory.mktemp("variants") / "data")
    for numbers, options in (
        ((60, 53), ("--variant", "author")),
        ((28,), ("--variant", "optimize")),
        ((20,), ("--variant", "port", "--to", "triton")),
        ((8,), ("--variant", "port", "--to", "hip")),
    ):
        smith(store, "freeze", "smith:sample", *[w for n in numbers for w in ("--pr", str(n))], *options)
    assert store.ids() == sorted([NATIVE, TRITON, READ_TWICE, PORT, HIP])
    return store


@pytest.fixture(scope="module")
def validated(world: Store) -> dict[str, dict[str, Any]]:
    """What validation said, by task."""
    tasks = (NATIVE, TRITON, READ_TWICE, PORT, HIP)
    said = smith(world, "validate", *tasks, "--repeats", "2", "--jobs", "2", "--json", check=1)
    return {t["id"]: t for t in said["tasks"]}


def test_each_is_what_this_machine_can_tell(validated: dict[str, dict[str, Any]]) -> None:
    said = {task: (t["device"], t["verdict"], [r.split(":")[0] for r in t["reasons"]]) for task, t in validated.items()}
    assert said == {
        NATIVE: ("cpu", "valid", []),
        TRITON: ("interpreter:gfx942", "valid", []),
        READ_TWICE: ("interpreter:gfx942", "unresolvable", ["needs_device"]),
        PORT: ("interpreter:gfx942", "unresolvable", ["needs_solution"]),
        HIP: ("rocm", "unresolvable", ["needs_device"]),
    }


def test_a_kernel_that_traps_shows_in_every_test_that_reaches_it(validated: dict[str, dict[str, Any]]) -> None:
    assert len(validated[NATIVE]["fail_to_pass"]) == 8
    assert validated[NATIVE]["flaky"] == validated[NATIVE]["pass_to_pass"] == []
    # Those of the other kernel of the file go on passing.
    assert set(validated[TRITON]["launches"]) == {"minikernels/ops/paged_gather.py::_paged_gather_kernel"}
    assert validated[TRITON]["fail_to_pass"]
    assert all("slot" in one for one in validated[TRITON]["pass_to_pass"])


def test_correctness_is_told_where_speed_cannot_be(validated: dict[str, dict[str, Any]]) -> None:
    (reason,) = validated[READ_TWICE]["reasons"]
    guards = validated[READ_TWICE]["pass_to_pass"]
    assert f"correctness held ({len(guards)} tests" in reason
    assert guards
    assert validated[READ_TWICE]["fail_to_pass"] == []
    assert "minikernels/ops/softmax.py::_softmax_kernel" in validated[READ_TWICE]["launches"]


@pytest.fixture(scope="module")
def panel(world: Store, validated: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A panel of both authors and the port, now that somebody has solved it."""
    folder = tmp_path_factory.mktemp("solution")
    # The tests of a port without a solution tell all the same.
    assert len(validated[PORT]["fail_to_pass"]) == 4
    files = {"minikernels/native/transpose.py": TRITON_TRANSPOSE}
    (folder / "port.patch").write_bytes(patch_of(world, world.load(PORT), folder / "source", files))
    options = ("--variant", "port", "--to", "triton", "--solution", str(folder / "port.patch"))
    smith(world, "freeze", "smith:sample", "--pr", "20", *options)
    (said,) = smith(world, "validate", PORT, "--repeats", "2", "--json")["tasks"]
    assert said["verdict"] == "valid"
    assert set(said["launches"]) == {"minikernels/native/transpose.py::_transpose_kernel"}
    assert any("launches are counted" in words for words in said["not_proved"])
    smith(world, "panel", "new", "written", NATIVE, TRITON, PORT)
    assert "variant" not in smith(world, "panel", "check")
    return "written"


def test_oracle_solves_all_and_nop_none(world: Store, panel: str) -> None:
    for agent, verdict in (("oracle", "solved"), ("nop", "failed")):
        said = smith(world, "eval", panel, "--agent", agent, "--jobs", "2", "--json")
        assert [a["verdict"] for a in said["attempts"]] == [verdict] * 3


def graded(world: Store, task: str, tmp_path: Path, files: dict[str, str]) -> Any:
    (tmp_path / "p").write_bytes(patch_of(world, world.load(task), tmp_path / "source", files))
    return smith(world, "grade", task, str(tmp_path / "p"), "--json")


def test_a_library_operator_in_place_of_the_kernel_is_no_port(world: Store, panel: str, tmp_path: Path) -> None:
    said = graded(world, PORT, tmp_path, {"minikernels/native/transpose.py": TORCH_TRANSPOSE})
    assert said["fail_to_pass"] == {"passed": 4, "total": 4}
    assert said["verdict"] == "failed"
    assert {reason.split(":")[0] for reason in said["reasons"]} == {"not_launched"}


def test_the_old_kernel_is_no_port(world: Store, panel: str, tmp_path: Path) -> None:
    """Neither given back nor built from what lies there to be read."""
    path = "minikernels/csrc/cpu/transpose.c"
    bundle = world.load(PORT)
    old = (bundle.path / "solution/start.patch").read_text().split(f"+++ b/port_reference/{path}\n")[1]
    body = "".join(line[1:] + "\n" for line in old.splitlines()[1:] if line.startswith("+"))
    said = graded(world, PORT, tmp_path / "back", {path: body})
    assert said["verdict"] == "invalid_patch"
    assert said["reasons"][0].startswith("not_editable")
    build = (
        "import pathlib, subprocess, sys\n"
        "root = pathlib.Path('.')\n"
        "out = root / 'minikernels/native/_lib'\n"
        "out.mkdir(exist_ok=True)\n"
        f"source = root / 'port_reference/{path}'\n"
        "if not source.exists(): sys.exit('nothing is there to be built')\n"
        "subprocess.run(['cc', '-shared', '-fPIC', '-o', str(out / 'libtranspose.so'), str(source)], check=True)\n"
    )
    said = graded(world, PORT, tmp_path / "built", {"minikernels/native/build.py": build})
    assert said["verdict"] == "failed"
    assert "nothing is there to be built" in said["reasons"][0]
    said = graded(world, PORT, tmp_path / "read", {f"port_reference/{path}": "int x;\n"})
    assert said["reasons"][0].startswith("hidden_path")


def test_host_code_that_does_not_launch_the_kernel_has_written_none(world: Store, panel: str, tmp_path: Path) -> None:
    path = "minikernels/ops/paged_gather.py"
    whole = "\n".join(
        (
            "import torch, triton, triton.language as tl",
            "def slot_mapping(page_table, positions, page_size):",
            "    return page_table[positions // page_size].long() * page_size + positions % page_size",
            "def paged_gather(cache, page_table, length):",
            "    return cache[page_table.long()].flatten(0, 1)[:length].contiguous()",
        )
    )
    said = graded(world, TRITON, tmp_path, {path: whole + "\n"})
    assert said["fail_to_pass"]["passed"] == said["fail_to_pass"]["total"]
    assert said["verdict"] == "failed"
    assert said["reasons"][0].startswith("not_launched")


def test_tables_name_the_variant(world: Store, panel: str) -> None:
    assert "variant port (native to triton) of a feature in triton" in smith(world, "task", "show", PORT)
    shown = smith(world, "task", "show", HIP, "--json")["task"]
    assert (shown["variant"], shown["port"]["to"], shown["port"]["solved"]) == ("port", "hip", False)
    assert "is whole" in smith(world, "task", "verify", PORT)


def test_exports_keep_a_variant_s_own_start_or_say_that_they_cannot(world: Store, panel: str, tmp_path: Path) -> None:
    words = smith(world, "export", "swebench", str(tmp_path / "rows.jsonl"), "--panel", panel, check=1)
    assert "start_is_no_commit" in words
    smith(world, "export", "harbor", str(tmp_path / "harbor"), "--panel", panel)
    names = {p.name for p in (tmp_path / "harbor").iterdir() if p.is_dir()}
    assert names == {task.replace("~", ".") for task in (NATIVE, TRITON, PORT)}
    source = tmp_path / "harbor" / TRITON.replace("~", ".") / "environment/source/minikernels/ops/paged_gather.py"
    assert "is not written yet" in source.read_text()
    assert not list((tmp_path / "harbor").glob("*/solution/start.patch"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--variant", "rewrite"), "'rewrite' is not one of"),
        (("--variant", "port"), "a port into which language?"),
        (("--variant", "port", "--to", "cuda"), "'cuda' is not one of"),
        (("--variant", "author", "--to", "hip"), "add --variant port"),
        (("--variant", "port", "--to", "hip", "--solution", "nowhere.patch"), "nowhere.patch: No such file"),
        (("--variant", "port", "--to", "hip", "--pr", "9", "--solution", "x"), "--solution solves one pull request"),
    ],
)
def test_options_that_do_not_belong_together_are_said(store: Store, options: tuple[str, ...], words: str) -> None:
    said = smith(store, "freeze", "smith:sample", "--pr", "20", *options, check=2)
    assert words in said
    assert len(said.strip().splitlines()) == 1
    assert store.ids() == []


def test_what_is_refused_is_a_typed_reason(store: Store) -> None:
    options = ("--variant", "optimize", "--variant", "author", "--json")
    said = smith(store, "freeze", "smith:sample", "--pr", "60", *options)
    assert [t["id"] for t in said["tasks"]] == [NATIVE]
    assert [(r["pr"], r["variant"], r["reason"]) for r in said["refused"]] == [(60, "optimize", "unfit_variant")]
