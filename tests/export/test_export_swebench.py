"""Rows of bundles: patches from trees, expectations from receipts, and the way back to the same bundle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smith import sample
from smith.errors import BadInput
from smith.export.candidates import Imported, import_rows
from smith.export.meets_target import agree, interval
from smith.export.rows import PERF_TARGET, Row, read_rows, write_rows
from smith.export.script import END, START, log_parser
from smith.export.swebench import Exported, Refused, export, image_of, make_row
from smith.export.task_repository import FILES, TASK, TESTS, write_task_repository
from smith.export.texts import text_diff
from smith.freeze.bundle import Bundle, Store
from smith.freeze.freeze import Frozen, freeze
from smith.freeze.panels import make_panel
from smith.git.mirrors import Upstream
from smith.git.patches import apply
from smith.git.repository import Repository
from smith.git.trees import TreeEntry, write_blob, write_tree
from smith.grade.trial import base_tree, reference_tree
from smith.mine import mine
from smith.records.receipt import Receipt, TimedCase, Timing, Verdict
from tests.conftest import new_data_repository

FIX, NATIVE, PERF = 6, 20, 46
HEAD = [sys.executable, "-m", "smith.cli.main"]


@pytest.fixture(scope="module")
def upstream(upstream_dir: Path) -> Upstream:
    return Upstream(sample.REPO, sample.URL, Repository.discover(upstream_dir))


@pytest.fixture(scope="module")
def world(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three tasks of the sample with receipts."""
    store = new_data_repository(tmp_path_factory.mktemp("exported") / "data")
    found = mine(upstream.repository, repo=upstream.repo, url=upstream.url, numbers=(FIX, NATIVE, PERF))
    for candidate in found.candidates:
        made = freeze(candidate, upstream, store)
        assert isinstance(made, Frozen)
        bundle = store.load(made.id)
        give(store, receipt(bundle, "cpu" if bundle.spec.languages == ("native",) else "interpreter:gfx942"))
    return store


def receipt(bundle: Bundle, device: str) -> Receipt:
    file = bundle.selection.files[0]
    perf = bool(bundle.selection.workloads)
    case = TimedCase(case="c", ratio=2.0, low=1.9, high=2.1)
    timing = Timing(
        method="m", device=device, rounds=7, noise_low=0.9, noise_high=1.1, cases=(case,), geomean=2.0, low=1.9,
        high=2.1, worst=2.0,
    )  # fmt: skip
    return Receipt(
        task=bundle.id,
        tree=bundle.tree,
        device=device,
        verdict=Verdict.VALID,
        fail_to_pass=() if perf else (f"{file}::test_new[1]",),
        pass_to_pass=(f"{file}::test_old",),
        timing=timing if perf else None,
    )


def give(store: Store, made: Receipt) -> None:
    made.save(store.layout.receipt(made.task, made.tree, made.device))


def rows(store: Store) -> dict[int, Exported]:
    found = [one for one in export(store) if isinstance(one, Exported)]
    return {one.bundle.spec.source.pr: one for one in found}


def test_a_row_says_what_bundle_and_receipt_say(world: Store) -> None:
    for number, one in rows(world).items():
        columns, source = one.row.columns, one.bundle.spec.source
        assert columns["instance_id"] == one.bundle.id == f"smith-lab__minikernels-{number}"
        assert (columns["repo"], columns["base_commit"]) == (source.repo, source.base)
        assert columns["problem_statement"] == one.bundle.instruction
        assert columns["patch"].encode() == one.bundle.reference
        assert columns["image"] == image_of(f"smith-lab__minikernels-{number}")
        assert (PERF_TARGET in columns["FAIL_TO_PASS"]) == (number == PERF)
        assert one.row.fail_to_pass == (() if number == PERF else (f"{one.bundle.selection.files[0]}::test_new[1]",))
    assert rows(world)[PERF].row.columns["FAIL_TO_PASS"] == [PERF_TARGET]


def test_the_patches_give_the_trees_that_are_graded(world: Store) -> None:
    for one in rows(world).values():
        start, scratch = one.bundle.spec.source.tree, world.scratch
        tested = apply(scratch, start, one.row.columns["test_patch"].encode())
        assert tested == base_tree(world, one.bundle)
        solved = apply(scratch, start, one.row.columns["patch"].encode())
        assert apply(scratch, solved, one.row.columns["test_patch"].encode()) == reference_tree(world, one.bundle)
        assert apply(scratch, tested, one.row.columns["patch"].encode()) == reference_tree(world, one.bundle)


def test_rows_come_back_as_candidates_of_the_same_bundles(world: Store, upstream: Upstream, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", [one.row for one in rows(world).values()])
    results = import_rows(read_rows(tmp_path / "rows.jsonl"), lambda repo: upstream, tmp_path / "objects")
    again = new_data_repository(tmp_path / "again")
    for result in results:
        assert isinstance(result, Imported)
        made = freeze(result.candidate, upstream, again)
        assert isinstance(made, Frozen)
        assert made.tree == world.load(made.id).tree == result.row.columns["smith_tree"]
    assert len(results) == 3


def test_rows_of_other_sets_become_candidates(world: Store, upstream: Upstream, tmp_path: Path) -> None:
    ours = dict(rows(world)[FIX].row.columns)
    landed = world.load(ours["instance_id"]).spec.source
    given = [
        # SWE-rebench: lists as JSON, patches without their last end of line, more columns.
        {**{k: ours[k] for k in ("repo", "instance_id", "base_commit", "test_patch")}, "patch": ours["patch"][:-1],
         "FAIL_TO_PASS": json.dumps(ours["FAIL_TO_PASS"]), "PASS_TO_PASS": "[]", "install_config": {"python": "3.9"}},
    ]  # fmt: skip
    gso = {
        "instance_id": f"smith-lab__minikernels-{landed.merged[:7]}",
        "repo": landed.repo,
        "base_commit": f"{landed.merged}^",
        "opt_commit": landed.merged,
        "tests": ["def setup(): ..."],
        "gt_diff": "",
    }
    for row in (*given, gso):
        (result,) = import_rows([Row(row)], lambda repo: upstream, tmp_path / "objects")
        assert isinstance(result, Imported)
        assert (result.candidate.pr, result.candidate.merged) == (FIX, landed.merged)


def changed(columns: dict[str, Any], **more: Any) -> Row:
    return Row({**columns, "merge_commit": None, **more})


def test_rows_that_are_no_landing_are_refused_by_name(world: Store, upstream: Upstream, tmp_path: Path) -> None:
    ours = dict(rows(world)[FIX].row.columns)
    other = ours["patch"].replace("\n+", "\n+ ", 3)
    given = {
        "not_merged": changed(ours, instance_id="smith-lab__minikernels-9999"),
        "no_number": changed(ours, instance_id="smith-lab__minikernels-abc"),
        "not_in_history": changed(ours, opt_commit="0" * 40),
        "bad_row": changed(ours, patch=3),
        "differs_from_landing": changed(ours, patch=other),
        "twice": changed(ours),
    }
    results = import_rows(
        [changed(ours), *given.values(), changed(ours, repo="../none")], lambda repo: upstream, tmp_path / "objects"
    )
    assert isinstance(results[0], Imported)
    refused = [one for one in results if isinstance(one, Refused)]
    assert [one.reason.code for one in refused] == [*given, "bad_row"]
    assert refused[0].id == "smith-lab__minikernels-9999" and "#9999" in refused[0].reason.detail


def test_a_task_without_a_receipt_for_the_device_is_refused(world: Store) -> None:
    found = list(export(world, device="cpu"))
    assert sorted(one.bundle.spec.source.pr for one in found if isinstance(one, Exported)) == [NATIVE, PERF]
    (refused,) = [one for one in found if isinstance(one, Refused)]
    assert (refused.id, refused.reason.code) == (f"smith-lab__minikernels-{FIX}", "no_receipt")
    assert "interpreter:gfx942" in refused.reason.detail


def test_a_panel_pins_which_receipts_count(world: Store) -> None:
    panel = make_panel(world, "p", [f"smith-lab__minikernels-{FIX}"])
    panel.save(world.layout.panel("p"))
    (one,) = export(world, "p")
    assert isinstance(one, Exported) and one.row.columns["smith_device"] == "interpreter:gfx942"
    (refused,) = export(world, "p", "cpu")
    assert isinstance(refused, Refused)


def test_a_receipt_without_tests_gives_no_row(world: Store) -> None:
    bundle = world.load(f"smith-lab__minikernels-{NATIVE}")
    empty = receipt(bundle, "cpu").model_copy(update={"fail_to_pass": ()})
    made = make_row(world, bundle, empty)
    assert not isinstance(made, Row) and made.code == "no_fail_to_pass"
    unreadable = receipt(bundle, "cpu").model_copy(update={"fail_to_pass": ("t.py::test[a  b]",)})
    made = make_row(world, bundle, unreadable)
    assert not isinstance(made, Row) and made.code == "unreadable_test_id"


@pytest.mark.parametrize(
    ("test_id", "parser"),
    [
        ("t.py::test[1-1]", "parse_log_pytest"),
        ("t.py::test[[0, 15]-float32]", "parse_log_pytest_v2"),
        ("t.py::test[a  b]", None),
        ("t.py::test[a - b]", None),
        ("t.py::test[16m x]", None),
    ],
)
def test_the_parser_gives_back_the_ids(test_id: str, parser: str | None) -> None:
    assert log_parser(["t.py::plain", test_id]) == parser


def columns_in(place: Path) -> dict[str, object]:
    """The columns of a task folder, read as its reader does: each long one is a file of its own."""
    lines = (line.partition(": ") for line in (place / TASK).read_text("utf-8").splitlines())
    found = {key: json.loads(value) for key, _, value in lines}
    assert found.pop("datasets") == ["lab/kernels"]
    for column, name in FILES.items():
        path = place / name
        found[column] = path.read_bytes().decode("utf-8") if path.is_file() else ""
    return found | json.loads((place / TESTS).read_text("utf-8"))


def test_a_task_repository_holds_every_column_and_an_image(world: Store, tmp_path: Path) -> None:
    folder, made = tmp_path / "tasks", list(rows(world).values())
    write_task_repository(world, folder, made, "lab/kernels")
    assert (folder / "sweb.yaml").read_text() == 'datasets: ["lab/kernels"]\nsplits: ["test"]\n'
    for one in made:
        place = folder / "tasks" / one.row.instance_id
        assert columns_in(place) == one.row.columns
        docker = (place / "Dockerfile").read_text()
        assert all((place / line.split()[1]).exists() for line in docker.splitlines() if line.startswith("COPY"))
        assert (place / "source" / "minikernels").is_dir()
        # Workloads are as hidden as tests: nothing that goes into the image holds one.
        copied = [p.read_bytes() for name in ("source", "smith-lib") for p in (place / name).rglob("*") if p.is_file()]
        workloads = one.bundle.path / "tests" / "workloads"
        assert not [w for w in one.bundle.selection.workloads if (workloads / w).read_bytes() in copied]
    before = sorted(folder.rglob("*"))
    write_task_repository(world, folder, made, "lab/kernels")
    assert sorted(folder.rglob("*")) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    for there in (tmp_path / "mine", tmp_path / "mine" / "precious"):
        with pytest.raises(BadInput, match="no task repository"):
            write_task_repository(world, there, made, "lab/kernels")
    assert (tmp_path / "mine" / "precious").read_text() == "x"


@pytest.mark.parametrize("solved", [True, False])
def test_the_evaluation_script_tells_gold_from_nothing(world: Store, tmp_path: Path, solved: bool) -> None:
    """The script itself, run in a folder that stands for ``/testbed``, on a test that really fails at the base."""
    bundle = world.load(f"smith-lab__minikernels-{NATIVE}")
    file = bundle.selection.files[0]
    ids = [name for name in bundle.selection.changed_tests if name.startswith(file)]
    measured = {"fail_to_pass": tuple(ids), "pass_to_pass": ()}
    row = make_row(world, bundle, receipt(bundle, "cpu").model_copy(update=measured))
    assert isinstance(row, Row)
    write_task_repository(world, tmp_path / "r", [Exported(row, bundle)], "d")
    place = tmp_path / "r" / "tasks" / bundle.id
    testbed = place / "source"
    git = ["git", "-C", str(testbed), "-c", "user.name=t", "-c", "user.email=t@t"]
    for argv in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "base"]):
        subprocess.run([*git, *argv], check=True)
    if solved:
        subprocess.run([*git, "apply", "-"], input=row.text("patch").encode(), check=True)
    # What a submission does to tests is undone.
    for path in (testbed / "tests").rglob("*.py"):
        path.write_text("raise SystemExit(0)\n")
    script = row.text("eval_script").replace("/testbed", str(testbed)).replace("/opt/smith", str(place / "smith-lib"))
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(["bash", "-c", script], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = done.stdout.split(START)[1].split(END)[0]
    assert bool([line for line in output.splitlines() if line.startswith(f"PASSED {file}::")]) == solved, done.stdout
    assert f"+ exit {0 if solved else 1}\n" in output


contents = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"", b"a", b"a\r\nb\r\n", b"caf\xe9\n", b"\0\1\2", "é\u2028\n".encode(), b"a\nb\nc\nd\n"]),
)
paths = st.sampled_from([b"a", b"b/c", b"b/d e", "é/ü".encode(), b"bad\xff", b"tests/t.py"])
worlds = st.dictionaries(paths, st.tuples(st.sampled_from(["100644", "100755"]), contents), max_size=5)


@given(worlds, worlds)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_any_change_has_a_form_as_text(store: Store, old: Any, new: Any) -> None:
    def plant(world: Any) -> str:
        entries = [
            TreeEntry(mode, "blob", write_blob(store.scratch, data), path) for path, (mode, data) in world.items()
        ]
        return write_tree(store.scratch, entries)

    before, after = plant(old), plant(new)
    text = text_diff(store.scratch, before, after)
    assert apply(store.scratch, before, json.loads(json.dumps(text)).encode("utf-8")) == after


def test_the_target_needs_a_gain_above_the_noise() -> None:
    low, high = interval([2.0, 2.1, 1.9, 2.0, 2.2, 2.0, 1.8])
    assert 1.8 <= low <= 2.0 <= high <= 2.2
    one = {"c": {"shape": [2], "values": [1.0, float("nan")]}}
    assert agree(one, {"c": {"shape": [2], "values": [1.0001, float("nan")]}})
    assert not agree(one, {"c": {"shape": [2], "values": [1.1, float("nan")]}})
    assert not agree(one, {"c": {"shape": [1], "values": [1.0]}})
    assert not agree(one, {})


def smith(root: Path, *args: str) -> tuple[int, Any]:
    done = subprocess.run([*HEAD, "-C", str(root), *args, "--json"], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else done.stderr


def test_the_commands_answer_with_the_documented_statuses(world: Store, tmp_path: Path) -> None:
    root = world.layout.root
    out = tmp_path / "rows.jsonl"
    code, said = smith(root, "export", "swebench", str(out))
    assert (code, len(said["rows"]), len(read_rows(out))) == (0, 3, 3)
    code, said = smith(root, "export", "swebench", str(tmp_path / "none.jsonl"), "--device", "rocm")
    assert (code, said["rows"], len(said["refused"])) == (1, [], 3) and not (tmp_path / "none.jsonl").exists()
    code, said = smith(root, "import", "swebench", str(out), "--upstream", "smith:sample", "--out", str(tmp_path / "c"))
    assert (code, sorted(c["pr"] for c in said["candidates"])) == (0, [FIX, NATIVE, PERF])
    assert len((tmp_path / "c").read_bytes().splitlines()) == 3
    odd = [{"instance_id": "half \ud83d and\nlines", "repo": "lab/x\ud83d"}]
    (tmp_path / "odd.jsonl").write_text(json.dumps(odd[0]) + "\n")
    done = subprocess.run(
        [*HEAD, "-C", str(root), "import", "swebench", str(tmp_path / "odd.jsonl"), "--upstream", "smith:sample"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 1), done
    assert done.stdout.startswith("refused  half \\ud83d and\\nlines  bad_row: ")
    (tmp_path / "bad.jsonl").write_text("{")
    code, said = smith(root, "import", "swebench", str(tmp_path / "bad.jsonl"))
    assert code == 2 and "bad.jsonl:1: not JSON" in said
    code, said = smith(root, "export", "predictions", "norun", str(tmp_path / "p.jsonl"))
    assert code == 2 and "no run norun" in said


def test_predictions_go_through_a_run_and_come_back(world: Store, tmp_path: Path, sandbox_name: str) -> None:
    root, task = world.layout.root, f"smith-lab__minikernels-{FIX}"
    make_panel(world, "one", [task, f"smith-lab__minikernels-{NATIVE}"]).save(world.layout.panel("one"))
    patch = world.load(task).reference.decode()
    given = tmp_path / "p.jsonl"
    given.write_text(
        json.dumps({"instance_id": task, "model_name_or_path": "lab/m 1", "model_patch": patch.rstrip("\n")})
    )
    code, said = smith(root, "import", "predictions", str(given), str(tmp_path / "patches"))
    assert (code, said["patches"]) == (0, 1)
    code, said = smith(
        root, "eval", "one", "--agent", "patch", "--patches", said["folders"][0], "--sandbox", sandbox_name
    )
    assert code == 0
    code, _ = smith(root, "export", "predictions", said["run"], str(tmp_path / "back.jsonl"))
    back = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text().splitlines()]
    assert code == 0
    assert back == [
        {"instance_id": task, "model_name_or_path": "lab/m 1", "model_patch": patch},
        {"instance_id": f"smith-lab__minikernels-{NATIVE}", "model_name_or_path": "lab/m 1", "model_patch": None},
    ]
