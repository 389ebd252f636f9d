"""Workloads the whole way: recorded from hidden tests in the interpreter, kept, shown, and held against submissions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from smith.environment.layers import LayeredEnvironment, build
from smith.errors import Stale
from smith.freeze.bundle import Bundle, Store
from smith.freeze.panels import StoredReceipt, check_panel, make_panel, receipts_of
from smith.freeze.workloads import forget_unnamed, keep_workload, load_workload
from smith.git.objects import TreeEntry, write_blob, write_tree
from smith.git.patches import diff
from smith.git.sources import keep
from smith.grade.grader import grade
from smith.grade.trial import Bench
from smith.records.candidate import KernelChange, Kind
from smith.records.grade import Grade, GradeVerdict
from smith.records.receipt import Receipt, Verdict
from smith.records.recipe import EnvironmentChoice, Recipe
from smith.records.task import Metadata, Selection, SmithMetadata, Source, TaskFile, TaskName
from smith.records.workload import RecordedCall, Value, Workload
from smith.sandbox import make
from smith.validate.receipts import keep as keep_receipt
from smith.validate.workloads import MOST, choose, noted, record
from tests.conftest import new_data_repository

pytestmark = pytest.mark.timeout(900)
pytest.importorskip("triton")

TASK = "lab__tiny-11"
DEVICE = "interpreter:gfx942"
KERNELS = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, y_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, x * factor, mask=offsets < n)

def launch(x, factor):
    x = x.contiguous()
    y = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, y, factor, x.numel(), BLOCK=64)
    return y

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return launch(x, factor)

    @staticmethod
    def backward(ctx, grad):
        return launch(grad, BACK), None

def scale(x, factor=2.0, by=None):
    return Scale.apply(x, factor) if by is None else by(x)

class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return scale(x * self.weight)

def untouched(x):
    return x + 1
"""
TEST = """
import torch
from tiny import kernels
from tiny import Layer
from tiny.kernels import scale, untouched

def test_scale():
    torch.manual_seed(0)
    x = torch.randn(4, 25, device="cuda", requires_grad=True)
    y = scale(x, 3.0)
    y.sum().backward()
    torch.testing.assert_close(y, x * 3)
    torch.testing.assert_close(x.grad, torch.full_like(x, 3.0))

def test_layer():
    layer = Layer(16).to("cuda", torch.float16)
    x = torch.rand(2, 16, device="cuda", dtype=torch.float16)
    layer(untouched(x)).sum().backward()
    torch.testing.assert_close(layer.weight.grad, 2 * (x + 1).sum(0))

def test_function_class_and_local_names():
    from tiny.kernels import launch
    x = torch.rand(6, 6, device="cuda").t()
    assert kernels.Scale.apply(x, 1.5).shape == launch(x, 1.5).shape == kernels.scale(x).shape

def test_plain_reference_beside_it():
    x = torch.rand(7, device="cuda", requires_grad=True)
    kernels.scale_kernel[(1,)](x.detach(), torch.empty_like(x), 1.0, 7, BLOCK=64)
    scale(x).sum().backward()
    untouched(x).sum().backward()

def test_closure():
    scale(torch.ones(3, device="cuda"), by=lambda x: kernels.launch(x, 1.0))
"""
NAMES = ("scale", "layer", "function_class_and_local_names", "closure", "plain_reference_beside_it")
WRONG, RIGHT = KERNELS.replace("BACK", "1.0"), KERNELS.replace("BACK", "ctx.factor")
REWRITTEN = RIGHT.replace(", BLOCK=64)", ", BLOCK=32)").replace("64)", "32)").replace("x * factor,", "factor * x,")
REMEMBERED = RIGHT.replace(
    "def scale(x, factor=2.0, by=None):\n",
    "SEEN = {}\n\ndef scale(x, factor=2.0, by=None):\n"
    "    if x.dtype == torch.float16 and SEEN.setdefault(x.shape, x.detach().clone()) is not None:\n"
    "        x = SEEN[x.shape] + (x - x.detach())\n",
)


def tree_of(store: Store, text: str, path: str = "tiny/kernels.py") -> str:
    files = {path: text} | ({"tiny/__init__.py": "from tiny.kernels import Layer\n"} if path.startswith("tiny") else {})
    blobs = [(name, write_blob(store.scratch, content.encode())) for name, content in files.items()]
    return write_tree(store.scratch, [TreeEntry("100644", "blob", oid, name.encode()) for name, oid in blobs])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Bundle]:
    store = new_data_repository(tmp_path_factory.mktemp("workload") / "data")
    trees = [tree_of(store, WRONG), tree_of(store, RIGHT)]
    hidden = tree_of(store, TEST, "tests/test_scale.py")
    for tree in (trees[0], hidden):
        keep(store.data, store.scratch, tree)
    source = Source(
        repo="lab/tiny", url="local:lab/tiny", pr=11, base="2" * 40, base_tree=trees[0], tree=trees[0],
        merged="3" * 40, merged_at="2026-07-01T00:00:00+00:00",
    )  # fmt: skip
    spec = SmithMetadata(
        id=TASK, kind=Kind.FIX, languages=("triton",), devices=("interpreter",), source=source,
        kernels=(KernelChange(path="tiny/kernels.py", language="triton", symbols=("scale_kernel",)),),
        editable=("tiny/**",),
    )  # fmt: skip
    recipe = Recipe(repo="lab/tiny", python_path=(".",), environments=(EnvironmentChoice(name="own"),))
    placed = {
        "task.toml": TaskFile(task=TaskName(name=f"smith/{TASK}"), metadata=Metadata(smith=spec)).dumps_toml(),
        "instruction.md": b"Gradients of scale(x, factor) must be those of x * factor.\n",
        "environment/recipe.toml": recipe.dumps_toml(),
        "solution/reference.patch": diff(store.scratch, *trees),
        "solution/solve.sh": b"#!/bin/sh\n",
        "tests/selection.json": Selection(tree=hidden, roots=("tests",), files=("tests/test_scale.py",)).dumps(),
        "tests/test.sh": b"#!/bin/sh\n",
    }
    for name, data in placed.items():
        path = store.layout.task(TASK) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return store, store.load(TASK)


def environment_of(store: Store) -> LayeredEnvironment:
    return build(EnvironmentChoice(name="own"), store.layout.environments)


@pytest.fixture(scope="module")
def recorded(world: tuple[Store, Bundle], sandbox_name: str) -> Workload:
    """The workload, kept beside its receipt."""
    store, bundle = world
    bench = Bench(store, make(sandbox_name), DEVICE)
    # What a validation finds here; the way through one is in test_workloads_timed.
    names = [f"tests/test_scale.py::test_{name}" for name in NAMES]
    receipt = Receipt(
        task=TASK,
        tree=bundle.tree,
        device=DEVICE,
        verdict=Verdict.VALID,
        fail_to_pass=tuple(names[:2]),
        pass_to_pass=tuple(names[2:]),
    )
    assert b"workload" not in receipt.dumps()
    keep_receipt(receipt, path_of(store, bundle))
    workload = record(bench, bundle, environment_of(store), receipt, lambda text: None)
    keep_workload(store.layout, workload)
    keep_receipt(noted(receipt, workload), path_of(store, bundle))
    return workload


def path_of(store: Store, bundle: Bundle) -> Path:
    return store.layout.receipt(TASK, bundle.tree, DEVICE)


def test_what_is_recorded(recorded: Workload) -> None:
    calls = {str(one.call): one for one in recorded.calls}
    assert set(calls) == {
        "tiny.kernels.scale(float32[4, 25]*, 3.0), then backward",
        "tiny.Layer(16)(float16[2, 16]), then backward",
        "tiny.kernels.Scale(float32[6, 6]~, 1.5)",
        "tiny.kernels.launch(float32[6, 6]~, 1.5)",
        "tiny.kernels.scale(float32[6, 6]~)",
        "tiny.kernels.scale(float32[7]*), then backward",
    }
    layer = calls["tiny.Layer(16)(float16[2, 16]), then backward"]
    assert [(one.name, str(one.tensor)) for one in layer.call.state] == [("weight", "float16[16]*")]
    # What went in lay between 1 and 2: what is drawn anew does too.
    fill = layer.call.tensors[1].fill
    assert 1 <= fill.low < fill.mean < fill.high <= 2
    assert layer.test == "tests/test_scale.py::test_layer"
    # The base differs where a gradient is taken, and only there.
    assert {name for name, one in calls.items() if one.base} == {
        "tiny.kernels.scale(float32[4, 25]*, 3.0), then backward",
        "tiny.Layer(16)(float16[2, 16]), then backward",
        "tiny.kernels.scale(float32[7]*), then backward",
    }
    assert "gradient 0: " in calls["tiny.kernels.scale(float32[4, 25]*, 3.0), then backward"].base
    assert [(one.entry, one.reason, one.count) for one in recorded.left_out] == [
        ("", "no_entry", 1),
        ("tiny.kernels.scale", "closure", 1),
    ]


def test_it_lies_beside_its_receipt(world: tuple[Store, Bundle], recorded: Workload) -> None:
    store, bundle = world
    receipt = Receipt.load(path_of(store, bundle))
    assert receipt.workload is not None and receipt.workload.sha256 == recorded.digest
    assert (receipt.workload.calls, receipt.workload.telling, receipt.workload.left_out) == (6, 3, 2)
    assert load_workload(store.layout, receipt) == recorded
    assert store.load(TASK).tree == bundle.tree, "a workload changed the bundle's identity"
    # A run that records nothing keeps it; another recording of the same calls is no news.
    keep_receipt(receipt.model_copy(update={"workload": None}), path_of(store, bundle))
    again = recorded.model_copy(update={"smith": "another"})
    keep_workload(store.layout, again)
    keep_receipt(noted(receipt, again), path_of(store, bundle))
    assert Receipt.load(path_of(store, bundle)) == receipt
    folder = store.layout.workload(TASK, bundle.tree, "").parent
    assert len(list(folder.iterdir())) == 2
    forget_unnamed(store.layout, TASK, bundle.tree)
    assert [path.stem for path in folder.iterdir()] == [recorded.digest]
    # A panel notices when it is gone or another one.
    panel = make_panel(store, "small", [TASK])
    assert check_panel(store, panel) == []
    path = store.layout.workload(TASK, bundle.tree, recorded.digest)
    data = path.read_bytes()
    for other, words in ((data + b" ", "is not the workload"), (None, "is missing")):
        path.write_bytes(other) if other is not None else path.unlink()
        assert [words in fault for fault in check_panel(store, panel)] == [True]
        with pytest.raises(Stale):
            load_workload(store.layout, receipt)
    path.write_bytes(data)


def test_it_is_shown(world: tuple[Store, Bundle], recorded: Workload) -> None:
    command = [sys.executable, "-m", "smith.cli.main", "-C", str(world[0].layout.root), "task", "show", TASK]
    shown = subprocess.run([*command, "--workload"], capture_output=True, text=True, check=True).stdout
    assert "6 calls, in 3 of them the base differs; 2 left out" in shown
    assert "tiny.Layer(16)(float16[2, 16]), then backward" in shown and "closure" in shown


def graded(world: tuple[Store, Bundle], text: str, sandbox: str) -> Grade:
    store, bundle = world
    (expected,) = receipts_of(store.layout, TASK, bundle.tree)
    patch = diff(store.scratch, bundle.spec.source.tree, tree_of(store, text))
    bench = Bench(store, make(sandbox), expected.receipt.device)
    return grade(bundle, patch, expected, bench, environment_of(store))


def test_an_honest_rewrite_is_solved(world: tuple[Store, Bundle], recorded: Workload, sandbox_name: str) -> None:
    found = graded(world, REWRITTEN, sandbox_name)
    assert (found.verdict, found.reasons) == (GradeVerdict.SOLVED, ())
    assert found.oracle is not None and (found.oracle.agreed, found.oracle.calls) == (6, 6)
    assert Grade.loads(found.dumps(), "grade.json") == found


def test_what_passes_every_test_and_remembers_is_not(
    world: tuple[Store, Bundle], recorded: Workload, sandbox_name: str
) -> None:
    found = graded(world, REMEMBERED, sandbox_name)
    assert found.fail_to_pass.passed == found.fail_to_pass.total > 0
    assert found.verdict is GradeVerdict.FAILED
    (reason,) = found.reasons
    assert reason.code == "oracle_mismatch"
    assert reason.detail.startswith("tiny.Layer(16)(float16[2, 16]), then backward: called again with other ")


def test_without_its_workload_nothing_is_graded(world: tuple[Store, Bundle], recorded: Workload) -> None:
    store, bundle = world
    (expected,) = receipts_of(store.layout, TASK, bundle.tree)
    note = expected.receipt.workload
    assert note is not None
    gone = expected.receipt.model_copy(update={"workload": note.model_copy(update={"sha256": "0" * 64})})
    bench = Bench(store, make("host"), DEVICE)
    with pytest.raises(Stale, match="the workload that the receipt names is missing"):
        grade(bundle, b"", StoredReceipt(gone, expected.blob), bench, environment_of(store))


def test_the_choice_is_spread_and_bounded(recorded: Workload) -> None:
    def one(entry: str, number: int, seconds: float) -> RecordedCall:
        call = recorded.calls[0].call.model_copy(
            update={"entry": entry, "kwargs": {"n": Value(kind="int", number=number)}}
        )
        return RecordedCall(call=call, test="t", seconds=seconds)

    many = [one("tiny.kernels.scale", n, 0.01) for n in range(60)] + [one("tiny.kernels.launch", 1, 500.0)]
    chosen, left = choose(many)
    assert len(chosen) <= MOST and chosen[1].call.entry == "tiny.kernels.launch"
    assert sum(x.count for x in left) + len(chosen) == 61 and {x.reason for x in left} == {"enough"}
    few = [one("tiny.kernels.scale", n, 9.0) for n in range(5)]
    assert len(choose([*few, *few])[0]) == 2
