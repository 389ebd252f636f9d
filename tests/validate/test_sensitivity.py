"""Planted faults: what is planted in real bundles, what a run says of one, and what receipts and panels make of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith import sample
from smith.environment.layers import build
from smith.freeze.bundle import Bundle, Store
from smith.freeze.freeze import freeze
from smith.git.mirrors import Upstream
from smith.git.patches import apply, diff
from smith.git.repository import Repository
from smith.git.trees import TreeEntry, overlay, read_file, write_blob, write_tree
from smith.grade.trial import Bench
from smith.mine import mine
from smith.records.policy import Policy
from smith.records.receipt import Receipt, Verdict
from smith.records.recipe import EnvironmentChoice
from smith.records.results import Failure, Outcome, TestResult
from smith.records.sensitivity import MAX_DIFF, Fate, PlantedFault, Sensitivity
from smith.sandbox import make
from smith.validate.planted import plant, shown_diff
from smith.validate.receipts import keep
from smith.validate.sensitivity import Asked, judged, measured
from tests.conftest import new_data_repository

# -- what is planted -------------------------------------------------------------------------------------------------

FUSED, NEW, NATIVE = (f"smith-lab__minikernels-{n}" for n in (53, 3, 60))


@pytest.fixture(scope="module")
def frozen(upstream_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = new_data_repository(tmp_path_factory.mktemp("planted") / "data")
    upstream = Upstream(sample.REPO, sample.URL, Repository.discover(upstream_dir))
    for candidate in mine(upstream.repository, repo=upstream.repo, url=upstream.url, numbers=[3, 53, 60]).candidates:
        freeze(candidate, upstream, store)
    return store


@pytest.mark.parametrize("task", [FUSED, NEW, NATIVE])
def test_every_fault_is_a_tree_of_its_own(frozen: Store, task: str) -> None:
    bundle = frozen.load(task)
    planted = plant(frozen, bundle, "interpreter:gfx942", 12, start_fails=True)
    repo, start = frozen.scratch, bundle.spec.source.tree
    assert planted.solution == apply(repo, start, bundle.reference)
    assert len({fault.name for fault in planted.faults}) == len(planted.faults)
    trees = [fault.tree for fault in planted.faults if fault.tree is not None]
    assert len(set(trees)) == len(trees)
    assert not {start, planted.solution} & set(trees)
    changed = {kernel.path: kernel.code for kernel in bundle.spec.kernels}
    for fault in planted.faults:
        assert (fault.tree is None) is (fault.fate is not None)
        if fault.kind == "mutant":
            assert fault.tree is not None
            patch = diff(repo, planted.solution, fault.tree)
            assert apply(repo, planted.solution, patch) == fault.tree
            assert patch.count(b"\n@@ ") == 1
            assert not fault.kernel or fault.kernel in changed[fault.path]
    assert sum(fault.kind == "mutant" for fault in planted.faults) == 12
    assert planted.sites >= 12


def test_the_same_faults_every_time_and_fewer_are_the_first_of_more(frozen: Store) -> None:
    bundle = frozen.load(FUSED)
    more = plant(frozen, bundle, "cpu", 8, start_fails=True)
    assert more == plant(frozen, bundle, "cpu", 8, start_fails=True)
    fewer = plant(frozen, bundle, "cpu", 3, start_fails=True)
    of = [[f.name for f in planted.faults if f.kind == "mutant"] for planted in (fewer, more)]
    assert of[0] == of[1][:3]


def test_all_of_a_change_taken_back_is_no_fault(frozen: Store) -> None:
    faults = plant(frozen, frozen.load(NEW), "cpu", 0, start_fails=True).faults
    assert [(f.fate, "all of the change" in f.detail) for f in faults] == [(Fate.SAME, True)]


def test_where_the_start_passes_a_hunk_taken_back_is_no_fault(frozen: Store) -> None:
    faults = plant(frozen, frozen.load(FUSED), "cpu", 2, start_fails=False).faults
    assert {f.fate for f in faults if f.kind == "hunk"} == {Fate.SAME}
    assert {f.fate for f in faults if f.kind == "mutant"} == {None}


BEFORE = "".join(f"x{n} = {n}\n" for n in range(30)) + "def scale(x):\n    return x\n"


def edited(frozen: Store, task: str, changes: dict[str, str], folder: Path) -> Bundle:
    """A copy of the bundle ``task`` with another start and reference: one file, ``minikernels/more.py``."""
    shutil.copytree(frozen.load(task).path, folder)
    bundle, path = frozen.load_folder(folder, task), b"minikernels/more.py"

    def tree(text: str) -> str:
        blob = write_blob(frozen.scratch, text.encode())
        return overlay(
            frozen.scratch,
            bundle.spec.source.tree,
            write_tree(frozen.scratch, [TreeEntry("100644", "blob", blob, path)]),
        )

    after = BEFORE
    for old, new in changes.items():
        assert old in after
        after = after.replace(old, new)
    start = tree(BEFORE)
    (bundle.path / "solution/reference.patch").write_bytes(diff(frozen.scratch, start, tree(after)))
    source = bundle.spec.source.model_copy(update={"tree": start, "base_tree": start})
    spec = bundle.spec.model_copy(update={"source": source})
    metadata = bundle.file.metadata.model_copy(update={"smith": spec})
    (bundle.path / "task.toml").write_bytes(bundle.file.model_copy(update={"metadata": metadata}).dumps_toml())
    return frozen.load_folder(folder, task)


def test_hunks_that_are_none_and_hunks_that_leave_no_program(frozen: Store, tmp_path: Path) -> None:
    changes = {
        "x2 = 2\n": "x2 = 2  # two\n",
        "x12 = 12\n": 'y = """\n',
        "x21 = 21\n": 'x21 = 21"""\n',
        "    return x\n": "    return x * 2\n",
    }
    faults = plant(frozen, edited(frozen, NATIVE, changes, tmp_path / "b"), "cpu", 0, start_fails=True).faults
    assert [f.fate for f in faults] == [Fate.SAME, Fate.TRIVIAL, Fate.TRIVIAL, None]
    assert "layout" in faults[0].detail
    assert "parse" in faults[1].detail


def test_a_diff_is_kept_whole_or_says_what_is_cut(frozen: Store) -> None:
    repo = frozen.scratch
    one, other = (
        write_tree(repo, [TreeEntry("100644", "blob", write_blob(repo, word * size), b"a.txt")])
        for word, size in ((b"a\n", 1), (b"b\n", MAX_DIFF))
    )
    assert "cut" not in shown_diff(repo, one, one)
    assert "characters cut" in shown_diff(repo, one, other)
    assert len(shown_diff(repo, one, other)) < MAX_DIFF + 100


# -- what a run says -------------------------------------------------------------------------------------------------


def result(name: str, outcome: Outcome, failure: Failure | None = None) -> TestResult:
    return TestResult(id=name, outcome=outcome, failure=failure, message="why\nmore")


PASSED = result("a", Outcome.PASSED)
MISSING = result("z", Outcome.MISSING)


@pytest.mark.parametrize(
    ("results", "fate", "by"),
    [
        ([PASSED], Fate.SURVIVED, None),
        ([PASSED, result("b", Outcome.FAILED, Failure.ASSERTION), MISSING], Fate.CAUGHT, "b"),
        ([result("b", Outcome.CRASHED), MISSING], Fate.CAUGHT, "b"),
        ([result("b", Outcome.TIMEOUT), MISSING], Fate.CAUGHT, "b"),
        ([result("b", Outcome.SKIPPED), MISSING], Fate.CAUGHT, "b"),
        ([result("b", Outcome.ERROR, Failure.COLLECTION)], Fate.TRIVIAL, "b"),
        ([result("b", Outcome.FAILED, Failure.IMPORT)], Fate.TRIVIAL, "b"),
        ([PASSED, result("b", Outcome.NOT_INTERPRETABLE)], Fate.VOID, None),
        ([PASSED, MISSING], Fate.VOID, None),
    ],
)
def test_the_fate_of_a_fault(results: list[TestResult], fate: Fate, by: str | None) -> None:
    found, caught, detail = judged(results, "timed out")
    assert (found, caught.id if caught else None) == (fate, by)
    assert (detail == "") is (fate is Fate.SURVIVED)
    assert "\n" not in detail


# -- receipts and panels ---------------------------------------------------------------------------------------------

NAMES = ("a@k.py:1", "b@k.py:2", "c@k.py:3")


def fault(name: str, fate: Fate) -> PlantedFault:
    return PlantedFault(name=name, kind="mutant", operator=name[0], file="k.py", line=1, fate=fate)


FOUND = st.lists(st.sampled_from(Fate), min_size=0, max_size=3).map(
    lambda fates: Sensitivity(
        faults=tuple(fault(name, fate) for name, fate in zip(NAMES, fates, strict=False)),
        mutants=3,
        sites=9,
        budget_s=1.0,
    )
)


def receipt(planted: Sensitivity | None) -> Receipt:
    return Receipt(
        task=NATIVE,
        tree="1" * 40,
        device="cpu",
        verdict=Verdict.VALID,
        planted=planted,
        sensitivity=planted.share if planted else None,
    )


@given(FOUND)
def test_what_was_planted_survives_its_file(planted: Sensitivity) -> None:
    one = receipt(planted)
    assert Receipt.loads(one.dumps(), "r.json") == one
    assert (one.sensitivity is None) == (planted.count(Fate.CAUGHT) + planted.count(Fate.SURVIVED) == 0)
    assert str(planted).count("\n") == 0


def test_receipts_without_planted_faults_are_the_same_bytes_as_before() -> None:
    assert b"planted" not in receipt(None).dumps()


@given(FOUND, FOUND)
def test_a_receipt_is_replaced_by_one_that_knows_more_and_kept_before_one_that_knows_less(
    one: Sensitivity, other: Sensitivity
) -> None:
    assert receipt(one).agrees_with(receipt(None)) and receipt(one).adds_to(receipt(None))
    assert not receipt(None).adds_to(receipt(one))
    assert not receipt(one).adds_to(receipt(one))
    assert receipt(None).with_what_it_lacks(receipt(one)) == receipt(one)
    tried = {f.name: f.fate for f in one.faults if f.fate is not Fate.NOT_TRIED}
    known = {f.name: f.fate for f in other.faults}
    assert receipt(one).adds_to(receipt(other)) is not all(known.get(name) is fate for name, fate in tried.items())


def test_a_receipt_with_planted_faults_takes_the_place_of_one_without(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    keep(receipt(None), path)
    planted = Sensitivity(faults=(fault("a@k.py:1", Fate.CAUGHT),), mutants=1, sites=1, budget_s=1.0)
    keep(receipt(planted), path)
    assert Receipt.load(path).sensitivity == 1.0
    keep(receipt(None), path)
    assert Receipt.load(path).sensitivity == 1.0


def test_a_policy_s_floor() -> None:
    half = Sensitivity(
        faults=(fault(NAMES[0], Fate.CAUGHT), fault(NAMES[1], Fate.SURVIVED), fault(NAMES[2], Fate.VOID)),
        mutants=3,
        sites=3,
        budget_s=1.0,
    )
    assert half.share == 0.5
    assert Policy().refusal(receipt(None)) == ""
    assert Policy(min_sensitivity=0.5).refusal(receipt(half)) == ""
    assert "catch 0.50" in Policy(min_sensitivity=0.6).refusal(receipt(half))
    assert "not measured" in Policy(min_sensitivity=0.0).refusal(receipt(None))


# -- a real run ------------------------------------------------------------------------------------------------------


def test_faults_are_tried_until_the_time_is_used_up(frozen: Store) -> None:
    """Outside of a sandbox, for speed; the whole way in a real one is in test_sensitivity_whole.py."""
    bundle = frozen.load(NATIVE)
    bench = Bench(frozen, make("host"), "cpu")
    environment = build(EnvironmentChoice(name="default"), frozen.layout.environments)
    before = receipt(None).model_copy(update={"fail_to_pass": ("tests/test_x.py::test_x",)})
    steps: list[str] = []
    after = measured(before, bundle, bench, environment, Asked(mutants=2, budget_s=0.0), steps.append)
    assert after.planted is not None
    assert {f.fate for f in after.planted.faults} <= {Fate.NOT_TRIED, Fate.SAME, Fate.TRIVIAL}
    assert after.planted.count(Fate.NOT_TRIED) >= 2
    assert after.sensitivity is None
    assert f"{after.planted.count(Fate.NOT_TRIED)} not tried" in str(after.planted)
    # The first few of them have a sandbox together.
    assert steps == [f"planted faults 1 to {len(after.planted.faults)} of {len(after.planted.faults)}"]
    assert after.planted.seeds == ()


def test_a_file_of_the_solution_is_what_its_tree_says(frozen: Store) -> None:
    bundle = frozen.load(FUSED)
    planted = plant(frozen, bundle, "cpu", 1, start_fails=True)
    (mutant,) = [f for f in planted.faults if f.kind == "mutant"]
    assert mutant.tree is not None
    before, after = (read_file(frozen.scratch, t, mutant.path) for t in (planted.solution, mutant.tree))
    assert before is not None and after is not None
    changed = [a != b for a, b in zip(before.splitlines(), after.splitlines(), strict=True)]
    assert changed.index(True) + 1 == mutant.line
