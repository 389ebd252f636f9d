"""Survivors in recorded calls of other shapes, in real sandboxes: each fault is seen where it shows, and only there."""

from __future__ import annotations

import time

import pytest
from tiny_tasks import new_store, tree_of, write_task

from smith.environment.layers import build
from smith.freeze.bundle import Store
from smith.git.patches import apply
from smith.git.trees import overlay
from smith.grade.trial import Bench
from smith.records.sensitivity import Fate, PlantedFault, Sensitivity
from smith.records.shapes import SeenInCalls
from smith.records.workload import Call, CallSpec, Fill, TensorSpec, Value, Workload
from smith.sandbox import make
from smith.validate.planted import Fault
from smith.validate.reshaped import MOST_CALLS, chosen, reshaped
from smith.validate.trees import Trees

pytest.importorskip("torch")
pytestmark = pytest.mark.timeout(600)

SCALE = """
import os
import torch

BLOCK = 1024

def scale(x):
    return x * 2

def even_only(x):
    assert x.shape[-1] % 2 == 0
    return x * 2

def flat(x):
    return torch.as_strided(x, x.shape, torch.empty(x.shape).stride()) * 2
"""
FAULTS = {
    "last_column": "    return torch.cat([x[:, : x.shape[1] // 2 * 2] * 2, x[:, x.shape[1] // 2 * 2 :]], 1)",
    "first_block": "    return torch.cat([x[:, :BLOCK] * 2, x[:, BLOCK:]], 1)",
    "inner_stride": "    return torch.as_strided(x, x.shape, (x.stride(0), 1)) * 2",
    "row_stride": "    return torch.as_strided(x, x.shape, (x.shape[1] * x.stride(1), x.stride(1))) * 2",
    "storage": "    return torch.as_strided(x, x.shape, x.stride(), 0) * 2",
    "no_rows": "    return x * 2 + 0 * x.max()",
    "crash": "    os._exit(3) if x.shape[1] % 2 else None\n    return x * 2",
    "any_values": "    return torch.where(x > 2, x, x * 2)",
    "none": "    return x + x",
}
SEEN = {
    "last_column": {"odd", "long"},
    "first_block": {"long"},
    "inner_stride": {"strided"},
    "row_stride": {"padded"},
    "storage": {"padded", "strided", "offset"},
    "no_rows": {"empty"},
    "any_values": {"recorded", "odd", "long", "strided", "padded", "offset"},
}


def recorded(entry: str, *shape: int) -> Call:
    tensor = TensorSpec(shape=shape, dtype="float32", fill=Fill(kind="normal", std=1.0))
    args = (Value(kind="tensor", tensor=tensor),)
    return Call(
        call=CallSpec(kind="function", entry=f"tiny.scale.{entry}", module="tiny.scale", args=args), seconds=0.01
    )


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, SeenInCalls | None], Sensitivity]:
    store: Store = new_store(tmp_path_factory.mktemp("reshaped") / "data")
    bundle = write_task(
        store, {"tests/test_scale.py": "def test_x(): pass\n"}, base={"tiny/__init__.py": "", "tiny/scale.py": ""},
        fixed={"tiny/scale.py": SCALE},
    )  # fmt: skip
    solution = apply(store.scratch, bundle.spec.source.tree, bundle.reference)
    faults, results = [], []
    for name, body in FAULTS.items():
        text = SCALE.replace("    return x * 2", body, 1)
        tree = overlay(store.scratch, solution, tree_of(store, {"tiny/scale.py": text}))
        faults.append(Fault(name, "mutant", name, "tiny/scale.py", 8, tree=tree))
        results.append(PlantedFault(name=name, kind="mutant", operator=name, file="s", line=8, fate=Fate.SURVIVED))
    results.append(PlantedFault(name="caught", kind="mutant", operator="o", file="s", line=8, fate=Fate.CAUGHT))
    workload = Workload(
        task=bundle.id, tree=bundle.tree, device="cpu", counted=False,
        calls=(recorded("scale", 8, 64), recorded("even_only", 8, 64), recorded("flat", 8, 64)),
    )  # fmt: skip
    environment = build(bundle.recipe.environments[0], store.layout.environments)
    bench = Bench(store, make("bubblewrap" if make("bubblewrap").check() is None else "host"), "cpu")
    trees = Trees(bundle, bench, environment, [], solution, time.monotonic() + 900)
    steps: list[str] = []
    after, trial = reshaped(results, faults, trees, workload, steps.append)
    assert trial is not None and trial.workload == workload.digest
    assert steps[0] == "3 recorded calls in other shapes" and len(steps) == 1 + len(FAULTS)
    late = Trees(bundle, bench, environment, [], solution, time.monotonic() - 1)
    assert reshaped(results, faults, late, workload) == (results, None)
    assert reshaped(results, faults, trees, None) == (results, None)
    found = Sensitivity(faults=tuple(after), mutants=9, sites=9, budget_s=900.0, shapes=trial)
    return {fault.name: fault.in_calls for fault in after}, found


@pytest.mark.parametrize("name", SEEN)
def test_a_fault_is_seen_in_the_variants_in_which_it_shows(
    tried: tuple[dict[str, SeenInCalls | None], Sensitivity], name: str
) -> None:
    seen = tried[0][name]
    assert seen is not None and set(seen.variants) == SEEN[name]
    assert seen.only_shapes is (name != "any_values")
    assert "tiny.scale.scale" in seen.call and seen.difference


def test_a_process_that_a_call_ends_is_seen_and_what_came_behind_it_is_not_held_against_it(
    tried: tuple[dict[str, SeenInCalls | None], Sensitivity],
) -> None:
    seen = tried[0]["crash"]
    assert seen is not None and set(seen.variants) == {"odd", "long"} and "ended" in seen.difference


def test_what_is_no_fault_is_not_seen(tried: tuple[dict[str, SeenInCalls | None], Sensitivity]) -> None:
    assert tried[0]["none"] is None and tried[0]["caught"] is None


def test_only_what_the_reference_answers_counts(tried: tuple[dict[str, SeenInCalls | None], Sensitivity]) -> None:
    trial = tried[1].shapes
    assert trial is not None
    by = {one.name: one for one in trial.variants}
    assert by["recorded"].used == 3
    # One entry refuses an odd width, so that only the other size is made odd; one does not honour strides.
    assert by["odd"].refused == {} and by["long"].refused == {"not_replayable": 1}
    assert by["strided"].refused == by["padded"].refused == {"layout": 1} and by["offset"].refused == {}
    assert by["empty"].used == 3


def test_the_share_is_that_of_the_tests(tried: tuple[dict[str, SeenInCalls | None], Sensitivity]) -> None:
    found = tried[1]
    assert found.share == 0.1 and found.count(Fate.SURVIVED) == 9
    assert "recorded calls show 8 of 9 survivors, 7 of them only in other shapes" in str(found)
    without = found.model_copy(update={"shapes": None})
    assert found.adds_to(without) and not without.adds_to(found)
    assert b"shapes" not in without.dumps() and Sensitivity.loads(found.dumps(), "s.json") == found


def test_calls_of_every_entry_are_varied_the_quickest_first() -> None:
    slow = recorded("scale", 9, 9).model_copy(update={"seconds": 30.0})
    some = [slow, *(recorded("scale", n, 2) for n in range(1, 12)), recorded("flat", 3, 3)]
    found = chosen(some)
    assert len(found) == MOST_CALLS and found[0] != slow and some[-1] in found
    assert chosen([slow]) == [slow]
