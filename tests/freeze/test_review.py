"""What the checks of a data repository refuse, in real repositories with real commits."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from smith import sample
from smith.errors import BadInput
from smith.freeze.bundle import Store
from smith.freeze.freeze import freeze
from smith.freeze.lineages import lineages, remember_lineages
from smith.freeze.panels import load_panel, make_panel, valid_tasks
from smith.freeze.review import Finding, review
from smith.git.mirrors import Upstream
from smith.git.repository import Repository
from smith.mine import mine
from smith.paths import Layout
from smith.records.policy import Policy
from smith.records.receipt import Arm, Receipt, Verdict
from tests.conftest import new_data_repository

CPU = "cpu"
TASKS = ("smith-lab__minikernels-60", "smith-lab__minikernels-53")


@pytest.fixture(scope="module")
def ready(upstream_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed data repository with two valid tasks and a panel of them."""
    store = new_data_repository(tmp_path_factory.mktemp("review") / "data")
    upstream = Upstream(sample.REPO, sample.URL, Repository.discover(upstream_dir))
    for candidate in mine(upstream.repository, repo=upstream.repo, url=upstream.url, numbers=[53, 60]).candidates:
        freeze(candidate, upstream, store)
    for task in TASKS:
        receipt(store, task).save(path_of(store, task))
    make_panel(store, "first", list(TASKS)).save(store.layout.panel("first"))
    commit(store)
    return store.layout.root


@pytest.fixture
def data(ready: Path, tmp_path: Path) -> Store:
    shutil.copytree(ready, tmp_path / "data", symlinks=True)
    return Store(Layout(tmp_path / "data"))


def receipt(store: Store, task: str, *, verdict: Verdict = Verdict.VALID, seconds: float = 1.0) -> Receipt:
    return Receipt(
        task=task,
        tree=store.load(task).tree,
        device=CPU,
        verdict=verdict,
        fail_to_pass=("tests/test_x.py::test_x",),
        arms=(Arm(arm="nop", repeat=1, passed=0, failed=1, other=0, seconds=seconds),),
        seconds=seconds,
    )


def path_of(store: Store, task: str) -> Path:
    return store.layout.receipt(task, store.load(task).tree, CPU)


def commit(store: Store) -> None:
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for args in (["add", "-A"], [*names, "commit", "-q", "-m", "change"]):
        subprocess.run(["git", *args], cwd=store.layout.root, check=True)


def codes(findings: Iterable[Finding]) -> list[str]:
    return [one.code for one in findings]


def test_a_good_repository_has_no_findings(data: Store) -> None:
    assert review(data, base="HEAD", devices=[CPU]) == []


def test_pins_and_devices(data: Store) -> None:
    (data.layout.task(TASKS[0]) / "instruction.md").write_text("another\n")
    path_of(data, TASKS[1]).write_bytes(receipt(data, TASKS[1], seconds=2.0).dumps())
    found = review(data, devices=["rocm"])
    assert codes(found) == ["pin", "pin", "device", "device"]
    assert all("\n" not in str(one) for one in found)


def test_a_panel_s_own_floor(data: Store) -> None:
    """Receipts below it cannot be pinned, are left out where every task is meant, and are found where they are."""
    for task, share in zip(TASKS, (0.9, 0.4), strict=True):
        receipt(data, task).model_copy(update={"sensitivity": share}).save(path_of(data, task))
    floor = Policy(min_sensitivity=0.8)
    assert valid_tasks(data, floor) == [TASKS[0]]
    with pytest.raises(BadInput, match=r"catch 0\.40 .* asks for 0\.80"):
        make_panel(data, "first", list(TASKS), policy=floor)
    with pytest.raises(BadInput, match="policy"):
        valid_tasks(data, Policy(min_sensitivity=0.95))
    panel = make_panel(data, "first", list(TASKS))
    panel.save(data.layout.panel("first"))
    assert b"policy" not in panel.dumps()
    assert review(data) == []
    panel.model_copy(update={"policy": floor}).save(data.layout.panel("first"))
    assert load_panel(data.layout, "first").policy == floor
    (finding,) = review(data)
    assert finding.code == "policy" and TASKS[1] in finding.message


def test_a_broken_file_is_a_finding_and_no_end(data: Store) -> None:
    (data.layout.task(TASKS[0]) / "task.toml").write_text("[")
    data.layout.panel("second").write_text("name = 3\n")
    assert sorted(codes(review(data))) == ["pin", "schema", "schema"]


def test_two_tasks_of_one_change_are_duplicates(data: Store) -> None:
    twin = data.layout.task(f"{TASKS[0]}1")
    shutil.copytree(data.layout.task(TASKS[0]), twin)
    text = (
        (twin / "task.toml").read_text().replace(TASKS[0], f"{TASKS[0]}1").replace("minikernels-60", "minikernels-601")
    )
    (twin / "task.toml").write_text(text.replace("minikernels-6011", "minikernels-601"))
    name = f"{TASKS[0]}1"
    receipt(data, name).save(path_of(data, name))
    make_panel(data, "first", [*TASKS, name]).save(data.layout.panel("first"))
    (finding,) = review(data)
    assert finding.code == "duplicate" and TASKS[0] in finding.message and name in finding.message


def test_a_lineage_lies_on_one_side(data: Store) -> None:
    for name, task, split in (("train", TASKS[0], "train"), ("test", TASKS[1], "held_out")):
        make_panel(data, name, [task], split=split).save(data.layout.panel(name))  # type: ignore[arg-type]
    assert review(data) == []
    remember_lineages(data.layout, {task: "smith-lab/minikernels#53" for task in TASKS})
    assert set(lineages(data.layout)) == set(TASKS)
    (finding,) = review(data)
    assert finding.code == "split" and "smith-lab/minikernels#53" in finding.message


def test_what_a_panel_pins_changes_with_its_revision_only(data: Store) -> None:
    before = load_panel(data.layout, "first")
    fewer = make_panel(data, "first", [TASKS[0]])
    fewer.save(data.layout.panel("first"))
    (finding,) = review(data, base="HEAD")
    assert finding.code == "revision" and TASKS[1] in finding.message
    next_ = make_panel(data, "first", [TASKS[0]], replaces=before)
    assert next_.revision == 2
    next_.save(data.layout.panel("first"))
    assert review(data, base="HEAD") == []
    assert make_panel(data, "first", [TASKS[0]], replaces=next_).revision == 2
    # A panel of its own, and one that is given up, are nobody's promise broken.
    make_panel(data, "new", [TASKS[0]]).save(data.layout.panel("new"))
    data.layout.panel("first").unlink()
    assert review(data, base="HEAD") == []


def test_receipts_are_replaced_by_runs_and_never_edited(data: Store) -> None:
    path = path_of(data, TASKS[0])
    make_panel(data, "first", [TASKS[1]], replaces=load_panel(data.layout, "first")).save(data.layout.panel("first"))
    edited = receipt(data, TASKS[0]).model_copy(update={"fail_to_pass": ("tests/test_y.py::test_y",)})
    for changed, words in (
        (edited, "was edited"),
        (receipt(data, TASKS[0], verdict=Verdict.INVALID, seconds=3.0), "unstable"),
        (receipt(data, TASKS[0], seconds=3.0), None),
    ):
        path.write_bytes(changed.dumps())
        found = review(data, base="HEAD")
        assert [one.code for one in found] == (["receipt"] if words else [])
        assert words is None or words in found[0].message
    path.unlink()
    assert review(data, base="HEAD") == []  # nothing pins it any more
    path_of(data, TASKS[1]).unlink()
    assert codes(review(data, base="HEAD")) == ["pin", "receipt"]


def test_a_base_that_is_none_is_bad_input(data: Store) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        review(data, base="nowhere")


def test_a_data_repository_inside_another_one(ready: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    shutil.copytree(ready, outer / "inner", symlinks=True, ignore=shutil.ignore_patterns(".git"))
    subprocess.run(["git", "init", "-q", "-b", "main", str(outer)], check=True)
    store = Store(Layout(outer / "inner"))
    commit(store)
    assert review(store, base="HEAD") == []
    make_panel(store, "first", [TASKS[0]]).save(store.layout.panel("first"))
    assert codes(review(store, base="HEAD")) == ["revision"]
