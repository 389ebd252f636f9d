"""The whole way on the sample upstream, through the command line, in real sandboxes: what a user does and sees."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smith.evaluate.attempt import finished
from smith.freeze.bundle import Store
from smith.freeze.panels import load_panel
from smith.git.patches import diff
from smith.git.trees import materialise, snapshot
from smith.ledger import Ledger, State
from smith.paths import Layout, locked
from smith.records.attempt import RunConfig
from tests.conftest import new_data_repository

# The first test that needs them validates six tasks: minutes on a busy machine.
pytestmark = pytest.mark.timeout(1500)

ODD = "smith-lab__minikernels-60"  # native, valid
FAST = "smith-lab__minikernels-24"  # native, performance
SHARED = "smith-lab__minikernels-43"  # refactoring: no fail-to-pass
GPU = "smith-lab__minikernels-50"  # HIP
TRITON = "smith-lab__minikernels-53"  # interpreter, valid
HOST = "smith-lab__minikernels-45"  # host code only


def smith(store: Store, *args: str, check: int | None = 0, env: dict[str, str] | None = None) -> Any:
    """Run the command line; the parsed JSON where ``--json`` was asked for, else what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(store.layout.root), *args],
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        timeout=600,
    )
    if check is not None:
        assert done.returncode == check, f"{args}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout) if "--json" in args and done.stdout else done.stdout + done.stderr


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, sandbox_name: str) -> Store:
    """A data repository in which six pull requests were frozen and validated."""
    store = new_data_repository(tmp_path_factory.mktemp("way") / "data")
    numbers = [task.rsplit("-", 1)[1] for task in (ODD, FAST, SHARED, GPU, TRITON, HOST)]
    frozen = smith(store, "freeze", "smith:sample", *[w for n in numbers for w in ("--pr", n)], "--json")
    assert {t["id"] for t in frozen["tasks"]} == {ODD, FAST, SHARED, GPU, TRITON, HOST}
    assert frozen["refused"] == []
    return store


@pytest.fixture(scope="module")
def validated(world: Store) -> dict[str, dict[str, Any]]:
    """What validation said, by task."""
    said = smith(
        world, "validate", ODD, FAST, SHARED, GPU, TRITON, HOST, "--repeats", "2", "--jobs", "2", "--json", check=1
    )
    return {t["id"]: t for t in said["tasks"]}


@pytest.fixture(scope="module")
def panel(world: Store, validated: dict[str, dict[str, Any]]) -> str:
    smith(world, "panel", "new", "small", ODD, FAST, TRITON)
    smith(world, "panel", "new", "one", ODD)
    return "small"


def test_valid_where_it_should_be_and_refused_for_the_reason_it_was_built_to_have(
    validated: dict[str, dict[str, Any]],
) -> None:
    said = {task: (t["device"], t["verdict"], [r.split(":")[0] for r in t["reasons"]]) for task, t in validated.items()}
    assert said == {
        ODD: ("cpu", "valid", []),
        FAST: ("cpu", "valid", []),
        TRITON: ("interpreter:gfx942", "valid", []),
        SHARED: ("interpreter:gfx942", "invalid", ["no_fail_to_pass"]),
        HOST: ("interpreter:gfx942", "invalid", ["host_code_only"]),
        GPU: ("rocm", "unresolvable", ["needs_device"]),
    }


def test_a_valid_task_says_what_was_measured(validated: dict[str, dict[str, Any]]) -> None:
    odd, fast, triton = (validated[t] for t in (ODD, FAST, TRITON))
    assert odd["fail_to_pass"]
    assert odd["pass_to_pass"]
    assert not odd["launches"]
    assert any("calls are not counted" in words for words in odd["not_proved"])
    assert triton["launches"]
    assert all(kernel.startswith("minikernels/ops/") for kernel in triton["launches"])
    assert any("speed" in words for words in triton["not_proved"])
    assert fast["fail_to_pass"] == []
    assert fast["timing"]["low"] > 1.0
    assert fast["timing"]["noise_low"] < fast["timing"]["geomean"]


def test_receipts_lie_by_tree_and_device(world: Store, validated: dict[str, dict[str, Any]]) -> None:
    for task, said in validated.items():
        assert world.layout.receipt(task, said["tree"], said["device"]).is_file()


@pytest.mark.slow
def test_validating_again_confirms_and_does_not_make_the_panel_stale(world: Store, panel: str) -> None:
    said = smith(world, "validate", ODD, "--json")
    assert said["tasks"][0]["verdict"] == "valid"
    assert smith(world, "panel", "check", panel, "--json")["faults"] == []


def test_oracle_solves_all_and_nop_none(world: Store, panel: str) -> None:
    oracle = smith(world, "eval", panel, "--agent", "oracle", "--jobs", "2", "--json")
    nop = smith(world, "eval", panel, "--agent", "nop", "--jobs", "2", "--json")
    assert [a["verdict"] for a in oracle["attempts"]] == ["solved"] * 3
    assert [a["verdict"] for a in nop["attempts"]] == ["failed"] * 3
    assert oracle["scores"]["solved"]["share"] == 1.0
    assert nop["scores"]["solved"]["share"] == 0.0
    assert oracle["budget"] == {"limit_usd": None, "spent_usd": 0.0, "held_usd": 0.0}
    assert smith(world, "report", oracle["run"], "--json") == oracle
    assert {r["run"] for r in smith(world, "runs", "--json")["runs"]} >= {oracle["run"], nop["run"]}
    assert "3/3" in smith(world, "report", oracle["run"])


# -- grading ----------------------------------------------------------------------------------------------------


@pytest.fixture
def workspace(world: Store, panel: str, tmp_path: Path) -> Iterator[Path]:
    """The source of the native task, to be changed."""
    folder = tmp_path / "source"
    materialise(world.scratch, world.load(ODD).spec.source.tree, folder)
    yield folder


def patch_of(world: Store, folder: Path, where: Path) -> str:
    base = world.load(ODD).spec.source.tree
    where.write_bytes(diff(world.scratch, base, snapshot(world.scratch, folder, base=base)))
    return str(where)


def graded(world: Store, patch: str, *args: str, check: int = 0) -> Any:
    return smith(world, "grade", ODD, patch, "--json", *args, check=check)


def test_the_reference_is_solved_and_nothing_is_failed(world: Store, workspace: Path, tmp_path: Path) -> None:
    reference = str(world.load(ODD).path / "solution/reference.patch")
    said = graded(world, reference, "--check")
    assert said["verdict"] == "solved"
    assert said["fail_to_pass"]["passed"] == said["fail_to_pass"]["total"] > 0
    assert (said["speedup"], said["speedup_reason"]) == (None, "not_asked")
    empty = tmp_path / "empty.patch"
    empty.write_bytes(b"")
    said = graded(world, str(empty), "--check", check=1)
    assert said["verdict"] == "failed"
    assert said["fail_to_pass"]["passed"] == 0
    assert said["pass_to_pass"]["passed"] == said["pass_to_pass"]["total"]


def test_code_that_does_not_build_has_failed(world: Store, workspace: Path, tmp_path: Path) -> None:
    source = next(workspace.rglob("*rms_norm*.c"))
    source.write_text("this is no C\n")
    said = graded(world, patch_of(world, workspace, tmp_path / "p"))
    assert said["verdict"] == "failed"
    assert said["reasons"][0].startswith("build_failed")


def test_a_build_cannot_rewrite_the_hidden_tests(world: Store, workspace: Path, tmp_path: Path) -> None:
    build = next(workspace.rglob("native/build.py"))
    build.write_text(
        "import pathlib, shutil\n"
        "for f in pathlib.Path('tests').glob('test_*.py'):\n"
        "    f.write_text('import pytest\\ndef test_x(): pass\\n')\n"
        "shutil.rmtree('tests')\n"
        "pathlib.Path('elsewhere').mkdir()\n"
        "pathlib.Path('tests').symlink_to('elsewhere')\n"
    )
    said = graded(world, patch_of(world, workspace, tmp_path / "p"))
    assert said["verdict"] == "failed"
    assert said["fail_to_pass"]["passed"] == 0


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("tests/test_native_rms_norm.py", "hidden_path"),
        ("conftest.py", "test_configuration"),
        ("minikernels/conftest.py", "test_configuration"),
        ("minikernels/sitecustomize.py", "test_configuration"),
        ("pyproject.toml", "not_editable"),
        ("elsewhere.py", "not_editable"),
    ],
)
def test_a_path_that_is_not_editable_is_refused_by_rule(
    world: Store, workspace: Path, tmp_path: Path, path: str, rule: str
) -> None:
    (workspace / path).write_text("# mine\n")
    said = graded(world, patch_of(world, workspace, tmp_path / "p"))
    assert said["verdict"] == "invalid_patch"
    assert said["reasons"][0].startswith(f"{rule}: {path}")


def test_a_symbolic_link_is_refused(world: Store, workspace: Path, tmp_path: Path) -> None:
    (workspace / "minikernels/shortcut.py").symlink_to("/etc/passwd")
    said = graded(world, patch_of(world, workspace, tmp_path / "p"))
    assert said["reasons"][0].startswith("symbolic_link")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"rubbish\n", "malformed"),
        (b"--- a/no/such.c\n+++ b/no/such.c\n@@ -1 +1 @@\n-x\n+y\n", "does_not_apply"),
        (b"--- /dev/null\n+++ b/../outside.py\n@@ -0,0 +1 @@\n+x\n", "escapes_tree"),
        (b"--- /dev/null\n+++ b/.git/config\n@@ -0,0 +1 @@\n+x\n", "escapes_tree"),
    ],
)
def test_a_patch_that_cannot_be_used_is_a_verdict(
    world: Store, panel: str, tmp_path: Path, text: bytes, rule: str
) -> None:
    (tmp_path / "p").write_bytes(text)
    said = graded(world, str(tmp_path / "p"))
    assert said["verdict"] == "invalid_patch"
    assert said["reasons"][0].startswith(rule)
    assert not (world.layout.root.parent / "outside.py").exists()


def spoiled(world: Store, tmp_path: Path, line: str) -> str:
    """A patch for the performance task that does ``line`` first at the timed sizes, which no test uses."""
    folder = tmp_path / "fast"
    base = world.load(FAST).spec.source.tree
    materialise(world.scratch, base, folder)
    source = next(folder.rglob("int8_matvec.c"))
    text = source.read_text()
    body = text.index("{", text.index("int8_matvec("))
    source.write_text(f"{text[: body + 1]}\n    if (cols > 500) {line};\n{text[body + 1 :]}")
    patch = tmp_path / f"{FAST}.patch"
    patch.write_bytes(diff(world.scratch, base, snapshot(world.scratch, folder, base=base)))
    return str(patch)


def test_a_kernel_that_is_wrong_only_at_the_timed_sizes_earns_nothing(world: Store, panel: str, tmp_path: Path) -> None:
    said = smith(world, "grade", FAST, spoiled(world, tmp_path, "return"), "--json")
    assert said["verdict"] == "failed"
    assert said["reasons"][0].startswith("workload_failed")
    assert "wrong result" in said["reasons"][0]
    assert said["speedup"] is None


@pytest.mark.slow
def test_a_kernel_that_crashes_when_timed_is_a_result_and_ends_no_run(world: Store, panel: str, tmp_path: Path) -> None:
    spoiled(world, tmp_path, "__builtin_trap()")
    smith(world, "panel", "new", "fast", FAST)
    said = smith(world, "eval", "fast", "--agent", "patch", "--patches", str(tmp_path), "--json")
    verdicts = {a["task"]: (a["verdict"], a["reasons"][0].split(":")[0]) for a in said["attempts"]}
    assert verdicts[FAST] == ("failed", "workload_failed")
    assert said["complete"]


def test_the_agent_patch_hands_in_patches_made_elsewhere(world: Store, panel: str, tmp_path: Path) -> None:
    (tmp_path / f"{ODD}.patch").write_bytes(world.load(ODD).reference)
    (tmp_path / f"{TRITON}.patch").write_bytes(b"rubbish")
    (tmp_path / f"{FAST}.patch").unlink(missing_ok=True)
    smith(world, "panel", "new", "two", ODD, TRITON)
    said = smith(world, "eval", "two", "--agent", "patch", "--patches", str(tmp_path), "--jobs", "2", "--json")
    ended = {a["task"]: (a["ended"], a["verdict"]) for a in said["attempts"]}
    assert ended == {ODD: ("submitted", "solved"), TRITON: ("stopped", "failed")}


# -- kills and resumes -------------------------------------------------------------------------------------------


def test_a_killed_run_is_resumed_and_finished_evidence_is_kept(world: Store, panel: str) -> None:
    argv = ["eval", "one", "--agent", "oracle", "--attempts", "3", "--budget-usd", "2.5", "--attempt-usd", "1"]
    child = subprocess.Popen(
        [sys.executable, "-m", "smith.cli.main", "-C", str(world.layout.root), *argv],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert child.stderr is not None
    line = child.stderr.readline().decode()
    assert line.startswith("run "), line
    run = line.split()[1]
    folder = world.layout.run(run)
    tree = world.load(ODD).tree

    def done() -> dict[Path, bytes]:
        places = [folder / "attempts" / ODD / f"{n:03d}" for n in (1, 2, 3)]
        return {
            p: (p / "grade.json").read_bytes()
            for number, p in enumerate(places, start=1)
            if finished(p, run, ODD, tree, number)
        }

    deadline = time.monotonic() + 240
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stderr.close()
    before = done()
    report = smith(world, "report", run, "--json")
    assert report["scores"]["missing"] == 3 - len(before)
    assert report["complete"] is (len(before) == 3)
    resumed = smith(world, "resume", run, "--json")
    assert [a["verdict"] for a in resumed["attempts"]] == ["solved"] * 3
    for place, grade in before.items():
        assert (place / "grade.json").read_bytes() == grade
    assert resumed["budget"] == {"limit_usd": 2.5, "spent_usd": 0.0, "held_usd": 0.0}
    # What was finished was paid once; every try is accounted for.
    assert smith(world, "budget", "check", "--json")["faults"] == []
    with Ledger.open(world.layout.ledger) as ledger:
        for place in before:
            tries = ledger.holds(f"eval/{run}/{ODD}/attempt-{place.name}")
            assert [hold.state for hold in tries] == [State.SETTLED]
        assert not ledger.holds(f"eval/{run}", [State.OPEN, State.UNCERTAIN])
        assert ledger.balance(f"eval/{run}").spent.wall_ms > 0
    # Nothing of the killed process is left in the scratch space.
    assert not [p for p in world.layout.work.iterdir() if p.is_dir()]


def test_a_run_is_graded_again_from_its_patches_alone(world: Store, panel: str) -> None:
    known = [r["run"] for r in smith(world, "runs", "--json")["runs"] if r["agent"] == "oracle" and r["complete"]]
    run = known[0] if known else smith(world, "eval", "one", "--agent", "oracle", "--json")["run"]
    again = smith(world, "regrade", run, "--task", ODD, "--json")
    assert (again["same"], again["different"], again["not_graded"], again["skipped"]) == (1, 0, 0, 0)
    # A grade that somebody wrote is not what the patch comes to.
    empty = smith(world, "eval", "one", "--agent", "nop", "--json")["run"]
    place = world.layout.run(empty) / "attempts" / ODD / "001" / "grade.json"
    document = json.loads(place.read_text()) | {"verdict": "solved", "reasons": []}
    place.write_text(json.dumps(document))
    before = place.read_bytes()
    assert smith(world, "report", empty, "--json")["scores"]["solved"]["count"] == 1
    said = smith(world, "regrade", empty, check=1)
    assert "0 of 1 verdicts the same" in said and "failed" in said
    assert place.read_bytes() == before
    assert smith(world, "regrade", empty, "--task", "a__b-1", check=2).count("\n") == 1


def test_an_interrupt_ends_at_once_and_state_is_kept(world: Store, panel: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "smith.cli.main", "-C", str(world.layout.root), "eval", "one", "--agent", "oracle"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert child.stderr is not None
    line = child.stderr.readline().decode()
    assert line.startswith("run "), line
    run = line.split()[1]
    time.sleep(2.0)
    child.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert child.wait(60) == 130
    assert time.monotonic() - began < 5
    child.stderr.close()
    assert smith(world, "report", run, "--json")["scores"]["missing"] == 1


def test_a_run_stops_when_the_budget_is_out_and_goes_on_when_it_is_raised(world: Store, panel: str) -> None:
    spent = smith(world, "budget", "show", "--json")["scopes"][0]["spent"]["wall_ms"] / 1000
    smith(world, "budget", "set", "eval", f"wall-s={spent}", "--why", "no more")
    words = smith(world, "eval", "one", "--agent", "nop", check=4)
    assert "eval: wall-s: used up" in words
    run = words.split()[1]
    assert smith(world, "report", run, "--json")["scores"]["missing"] == 1
    assert not list(world.layout.run(run).glob("attempts/*/*"))  # nothing had begun
    smith(world, "budget", "raise", "eval", f"wall-s={spent}:unlimited", "--why", "go on")
    assert [a["verdict"] for a in smith(world, "resume", run, "--json")["attempts"]] == ["failed"]


def test_a_run_has_one_worker_at_a_time(world: Store, panel: str) -> None:
    said = smith(world, "eval", "one", "--agent", "nop", "--json")
    with locked(world.layout.run(said["run"]) / "lock"):
        words = smith(world, "resume", said["run"], check=2)
    assert "in use by another smith process" in words


# -- bad input: one clear line, the right status, nothing half-written --------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["mine", "/no/such/place"], "no such"),
        (["freeze", "smith:sample", "--pr", "9999"], "9999"),
        (["freeze", "smith:sample", "--pr", "10"], "10"),
        (["freeze", "smith:sample"], "--pr"),
        (["validate", "nobody__nothing-1"], "no task nobody__nothing-1"),
        (["validate"], "--panel"),
        (["validate", ODD, "--device", "abacus"], "abacus"),
        (["validate", ODD, "--sandbox", "cellar"], "cellar"),
        (["panel", "show", "nowhere"], "no panel nowhere"),
        (["panel", "new", "bad", SHARED], "no valid receipt"),
        (["panel", "new", "../bad", ODD], "no name"),
        (["grade", ODD, "/no/such.patch"], "No such"),
        (["grade", SHARED, __file__], "no valid receipt"),
        (["eval", "small", "--agent", "genius"], "genius"),
        (["eval", "small", "--agent", "patch"], "--patches"),
        (["report", "never"], "no run never"),
        (["schema", "nothing"], "nothing"),
        (["mine", "smith:sample", "--kind", "miracle"], "miracle"),
        (["nonsense"], "nonsense"),
        (["validate", ODD, "--device", "cpu:"], "cpu:"),
        (["validate", ODD, "--device", "interpreter:gfx1"], "gfx1"),
        (["panel", "new", "twice"], "--valid"),
        (["task", "show", "x" * 300], "no task id"),
        (["eval", "small", "--agent", "nop", "--budget-usd", "nan"], "nan"),
        (["eval", "small", "--agent", "nop", "--sandbox", "docker"], "docker"),
    ],
)
def test_bad_input_is_one_line_and_status_2(world: Store, panel: str, args: list[str], words: str) -> None:
    said = smith(world, *args, check=2)
    assert words in said
    assert len([line for line in said.splitlines() if line.strip()]) == 1, said


def test_outside_a_data_repository_it_says_how_to_make_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "smith.cli.main", "-C", str(tmp_path), "runs"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "smith init" in done.stderr


@pytest.fixture
def copy(world: Store, panel: str, tmp_path: Path) -> Store:
    """A copy of the data repository, to be spoiled."""
    shutil.copytree(world.layout.root, tmp_path / "copy", symlinks=True)
    return Store(Layout(tmp_path / "copy"))


def test_a_panel_whose_task_has_changed_is_refused(copy: Store) -> None:
    (copy.layout.task(ODD) / "instruction.md").write_text("Another task.\n")
    assert "has changed" in smith(copy, "eval", "small", "--agent", "nop", check=2)
    assert smith(copy, "panel", "check", "small", "--json", check=1)["faults"]
    assert not list(copy.layout.runs.glob("*-nop*")) or all(
        RunConfig.load(p / "run.json") for p in copy.layout.runs.glob("*-nop*")
    )


def test_a_receipt_of_another_tree_is_no_receipt(copy: Store) -> None:
    before = copy.load(ODD).tree
    (copy.layout.task(ODD) / "instruction.md").write_text("Another task.\n")
    receipts = copy.layout.tasks / "receipts" / ODD
    shutil.copytree(receipts / before, receipts / copy.load(ODD).tree)
    assert "speaks of" in smith(copy, "panel", "new", "forged", ODD, check=2)


def test_evidence_of_another_attempt_does_not_count(copy: Store) -> None:
    said = smith(copy, "eval", "one", "--agent", "nop", "--attempts", "2", "--json")
    folder = copy.layout.run(said["run"]) / "attempts" / ODD
    (folder / "001/submission.patch").write_bytes(b"x")
    record = folder / "002/attempt.json"
    record.write_text(record.read_text().replace('"attempt": 2', '"attempt": 7'))
    assert smith(copy, "report", said["run"], "--json")["scores"]["missing"] == 2


def test_a_panel_whose_receipt_was_edited_is_refused(copy: Store) -> None:
    pinned = next(t for t in load_panel(copy.layout, "small").tasks if t.id == ODD)
    path = copy.layout.receipt(ODD, pinned.tree, "cpu")
    path.write_text(path.read_text().replace('"pass_to_pass": [', '"pass_to_pass": [\n    "x",', 1))
    assert "not the one pinned" in smith(copy, "eval", "small", "--agent", "nop", check=2)


def test_a_full_disk_is_one_line_and_nothing_is_half_written(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("a small file system needs the right to mount one")
    try:
        store = new_data_repository(small)
        with (small / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        argv = [sys.executable, "-m", "smith.cli.main", "-C", str(small), "freeze", "smith:sample", "--pr", "8"]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        assert store.ids() == []
        (small / "filler").unlink()
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert store.ids() == ["smith-lab__minikernels-8"]
    finally:
        subprocess.run(["umount", str(small)], check=True)
