"""What the sanitizer adds to receipts and grades, on a task of one Triton kernel with real runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from smith.environment.layers import build
from smith.errors import BadInput
from smith.evaluate.run import start_run
from smith.freeze.bundle import Bundle, Store
from smith.freeze.panels import StoredReceipt, make_panel, receipts_of
from smith.freeze.review import review
from smith.git.objects import TreeEntry, write_blob, write_tree
from smith.git.patches import diff
from smith.git.sources import keep
from smith.grade.grader import grade
from smith.grade.trial import Bench
from smith.records.candidate import KernelChange, Kind
from smith.records.grade import Grade, GradeVerdict
from smith.records.memory import FindingKind
from smith.records.panel import Panel
from smith.records.policy import Policy
from smith.records.receipt import Receipt, Verdict
from smith.records.recipe import EnvironmentChoice, Recipe
from smith.records.task import Metadata, Selection, SmithMetadata, Source, TaskFile, TaskName
from smith.sandbox import make
from smith.validate.receipts import keep as keep_receipt
from smith.validate.sanitize import told
from smith.validate.validate import Validation
from tests.conftest import new_data_repository

pytestmark = pytest.mark.timeout(900)
pytest.importorskip("triton")

TASK = "lab__tiny-9"
KERNELS = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < LIMIT, other=0.0)
    tl.store(y_ptr + offsets, x * FACTOR, mask=offsets < n)

def scale(x):
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
"""
TEST = """
import torch
from tiny.kernels import scale

def test_scale():
    x = torch.randn(100, device="cuda")
    torch.testing.assert_close(scale(x), x * 2)

def test_zero():
    x = torch.zeros(100, device="cuda")
    torch.testing.assert_close(scale(x), x)
"""


def kernels(limit: str, factor: str) -> str:
    return KERNELS.replace("LIMIT", limit).replace("FACTOR", factor)


CLEAN, WILD, WRONG = kernels("n", "2.0"), kernels("n + 1", "2.0"), kernels("n", "3.0")
WILD_OTHERWISE = WILD.replace("BLOCK=64", "BLOCK=32").replace(", 64)", ", 32)")


def tree_of(store: Store, text: str, path: str = "tiny/kernels.py") -> str:
    blob = write_blob(store.scratch, text.encode())
    return write_tree(store.scratch, [TreeEntry("100644", "blob", blob, path.encode())])


def written(store: Store, base: str, reference: str) -> Bundle:
    """A bundle whose base and reference are these two texts."""
    trees = [tree_of(store, base), tree_of(store, reference)]
    hidden = tree_of(store, TEST, "tests/test_scale.py")
    for tree in (trees[0], hidden):
        keep(store.data, store.scratch, tree)
    source = Source(
        repo="lab/tiny", url="local:lab/tiny", pr=9, base="2" * 40, base_tree=trees[0], tree=trees[0], merged="3" * 40,
        merged_at="2026-07-01T00:00:00+00:00",
    )  # fmt: skip
    spec = SmithMetadata(
        id=TASK, kind=Kind.FIX, languages=("triton",), devices=("interpreter",), source=source,
        kernels=(KernelChange(path="tiny/kernels.py", language="triton", symbols=("scale_kernel",)),),
        editable=("tiny/**",),
    )  # fmt: skip
    placed = {
        "task.toml": TaskFile(task=TaskName(name=f"smith/{TASK}"), metadata=Metadata(smith=spec)).dumps_toml(),
        "instruction.md": b"scale(x) must give twice x.\n",
        "environment/recipe.toml": Recipe(
            repo="lab/tiny", python_path=(".",), environments=(EnvironmentChoice(name="own"),)
        ).dumps_toml(),
        "solution/reference.patch": diff(store.scratch, *trees),
        "solution/solve.sh": b"#!/bin/sh\n",
        "tests/selection.json": Selection(tree=hidden, roots=("tests",), files=("tests/test_scale.py",)).dumps(),
        "tests/test.sh": b"#!/bin/sh\n",
    }
    for name, data in placed.items():
        path = store.layout.task(TASK) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return store.load(TASK)


def validated(store: Store, bundle: Bundle, *, sanitizer: bool) -> Receipt:
    bench = Bench(store, make("host"), "interpreter:gfx942")
    receipt = Validation(
        bundle, bench, repeats=1, builder=lambda choice: build(choice, store.layout.environments), sanitizer=sanitizer
    ).receipt()
    keep_receipt(receipt, store.layout.receipt(TASK, bundle.tree, receipt.device))
    return receipt


def test_a_fault_that_the_memory_here_forgives_is_seen(store: Store) -> None:
    """The pull request mended an out-of-bounds read: no test tells base from reference, the sanitizer does."""
    receipt = validated(store, written(store, WILD, CLEAN), sanitizer=True)
    assert receipt.verdict is Verdict.INVALID
    (reason,) = receipt.reasons
    assert reason.code == "no_fail_to_pass"
    report = receipt.sanitizer
    assert report is not None and report.clean and report.mended is not None
    assert report.mended.tests == 2 and report.base.tests == 2
    seen = "out_of_bounds_read: load of x_ptr[100] at tiny/kernels.py:9 in scale_kernel"
    assert seen in str(report.mended)
    assert told(report) == [f"sanitizer: the base is not clean, and the reference is: {report.mended}"]


@pytest.mark.slow
def test_a_reference_that_is_not_clean_is_flagged_and_the_verdict_stays(store: Store) -> None:
    receipt = validated(store, written(store, WRONG, WILD), sanitizer=True)
    assert receipt.verdict is Verdict.VALID and receipt.reasons == ()
    assert receipt.sanitizer is not None and not receipt.sanitizer.clean and receipt.sanitizer.mended is None
    assert told(receipt.sanitizer)[0].startswith("sanitizer: the reference is not clean: out_of_bounds_read")
    with pytest.raises(BadInput, match="the reference itself is not clean"):
        make_panel(store, "strict", [TASK], policy=Policy(sanitize=True))
    assert make_panel(store, "loose", [TASK]).tasks


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Bundle]:
    """A task whose reference is clean; validated without the sanitizer first."""
    store = new_data_repository(tmp_path_factory.mktemp("strict") / "data")
    return store, written(store, WRONG, CLEAN)


@pytest.mark.slow
def test_the_policy_of_a_panel(strict: tuple[Store, Bundle]) -> None:
    store, bundle = strict
    plain = validated(store, bundle, sanitizer=False)
    assert plain.sanitizer is None and b"sanitizer" not in plain.dumps()
    with pytest.raises(BadInput, match="was not validated under the sanitizer"):
        make_panel(store, "strict", [TASK], policy=Policy(sanitize=True))
    watched = validated(store, bundle, sanitizer=True)
    path = store.layout.receipt(TASK, bundle.tree, watched.device)
    kept = path.read_bytes()
    assert Receipt.load(path).sanitizer is not None
    validated(store, bundle, sanitizer=False)
    assert path.read_bytes() == kept, "a run without the sanitizer threw away what was seen"
    panel = make_panel(store, "strict", [TASK], policy=Policy(sanitize=True))
    assert Panel.loads(panel.dumps(), "p.json").sanitize
    # Where earlier versions had it.
    old = (
        panel.dumps_toml()
        .replace(b"[policy]\nsanitize = true\n", b"")
        .replace(b"revision", b"sanitize = true\nrevision")
    )
    assert b"policy" not in old and Panel.loads(old, "p.toml") == panel
    assert [f.code for f in review(store)] == []
    clean, unseen = Receipt.load(path), plain
    assert panel.policy is not None
    assert panel.policy.refusal(clean) == "" and "not validated under" in panel.policy.refusal(unseen)
    assert (panel.policy.lacks(clean), panel.policy.lacks(unseen)) == ("", "--sanitize")
    loose = make_panel(store, "strict", [TASK], replaces=panel)
    assert loose.revision == panel.revision + 1 and b"sanitize" not in loose.dumps()
    assert start_run(store, panel, agent="oracle", sandbox="host").sanitize
    assert not start_run(store, loose, agent="oracle", sandbox="host").sanitize


@pytest.fixture(scope="module")
def graded(strict: tuple[Store, Bundle]) -> Callable[[str, bool], Grade]:
    store, bundle = strict
    if not receipts_of(store.layout, TASK, bundle.tree):
        validated(store, bundle, sanitizer=True)
    (expected,) = receipts_of(store.layout, TASK, bundle.tree)
    environment = build(EnvironmentChoice(name="own"), store.layout.environments)

    def one(text: str, sanitize: bool, expected: StoredReceipt = expected) -> Grade:
        patch = diff(store.scratch, bundle.spec.source.tree, tree_of(store, text))
        bench = Bench(store, make("host"), expected.receipt.device)
        return grade(bundle, patch, expected, bench, environment, sanitize=sanitize)

    return one


def test_what_passes_and_is_not_clean_fails_where_the_policy_asks(graded: Callable[[str, bool], Grade]) -> None:
    assert graded(WILD_OTHERWISE, False).verdict is GradeVerdict.SOLVED
    found = graded(WILD_OTHERWISE, True)
    assert found.verdict is GradeVerdict.FAILED
    (reason,) = found.reasons
    assert reason.code == "not_clean" and FindingKind.OUT_OF_BOUNDS_READ.value in reason.detail
    assert "tests/test_scale.py::test_scale" in reason.detail
    assert found.fail_to_pass.passed == found.fail_to_pass.total > 0


def test_what_is_clean_is_solved_and_what_fails_says_how(graded: Callable[[str, bool], Grade]) -> None:
    assert graded(CLEAN, True).verdict is GradeVerdict.SOLVED
    failing = graded(WRONG.replace("3.0", "4.0"), True)
    assert [r.code for r in failing.reasons] == ["failed"]


def test_a_submission_that_hides_from_the_sanitizer_is_not_shown_to_be_clean(
    graded: Callable[[str, bool], Grade],
) -> None:
    hiding = CLEAN + "\nimport sys, os\nif 'smith.device.interpreter.sanitizer' in sys.modules:\n    os._exit(0)\n"
    found = graded(hiding, True)
    assert found.verdict is GradeVerdict.FAILED
    assert {r.code for r in found.reasons} == {"not_clean"}
    assert "does not pass under the sanitizer" in found.reasons[0].detail
