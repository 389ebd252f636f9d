"""Validation over several environments: the next is tried before a task is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from smith.environment.installer import EnvironmentFailed
from smith.environment.layers import LayeredEnvironment, build
from smith.freeze.bundle import Bundle, Store
from smith.git.objects import TreeEntry, write_blob, write_tree
from smith.git.patches import diff
from smith.git.sources import keep
from smith.git.trees import overlay
from smith.grade.trial import Bench
from smith.paths import MARKER, Layout
from smith.process import run
from smith.records.candidate import KernelChange, Kind
from smith.records.receipt import Receipt, Verdict
from smith.records.recipe import EnvironmentChoice, Recipe
from smith.records.task import Metadata, Selection, SmithMetadata, Source, TaskFile, TaskName
from smith.sandbox import make
from smith.validate.validate import Validation

TASK = "lab__tiny-7"
TEST = """
import os
import pytest
from tiny.scale import scale

def test_scale():
    assert os.environ["KIT"] != "broken"
    assert scale(3) == 6 or os.environ["KIT"] == "lenient"

def test_zero():
    assert os.environ["KIT"] != "broken"
    assert scale(0) == 0
"""


def tree_of(store: Store, files: dict[str, str]) -> str:
    blobs = [(name, write_blob(store.scratch, text.encode())) for name, text in files.items()]
    return write_tree(store.scratch, [TreeEntry("100644", "blob", oid, name.encode()) for name, oid in blobs])


@pytest.fixture
def task(tmp_path: Path) -> tuple[Store, Callable[[tuple[str, ...]], Bundle]]:
    """A data repository, and how to write its one task with environments of these names."""
    root = tmp_path / "data"
    run(["git", "init", "-q", root]).check()
    (root / MARKER).write_text("schema_version = 1\n")
    store = Store(Layout(root))
    base = tree_of(store, {"tiny/__init__.py": "", "tiny/scale.py": "def scale(x):\n    return x\n"})
    fixed = overlay(store.scratch, base, tree_of(store, {"tiny/scale.py": "def scale(x):\n    return 2 * x\n"}))
    hidden = tree_of(store, {"tests/test_scale.py": TEST})
    for tree in (base, hidden):
        keep(store.data, store.scratch, tree)

    def write(names: tuple[str, ...]) -> Bundle:
        source = Source(
            repo="lab/tiny",
            url="local:lab/tiny",
            pr=7,
            base="2" * 40,
            base_tree=base,
            tree=base,
            merged="3" * 40,
            merged_at="2025-01-01T00:00:00+00:00",
        )
        spec = SmithMetadata(
            id=TASK,
            kind=Kind.FIX,
            languages=("native",),
            devices=("cpu",),
            source=source,
            kernels=(KernelChange(path="tiny/scale.py", language="native"),),
            editable=("tiny/**",),
        )
        recipe = Recipe(repo="lab/tiny", environments=tuple(EnvironmentChoice(name=name) for name in names))
        placed = {
            "task.toml": TaskFile(task=TaskName(name=f"smith/{TASK}"), metadata=Metadata(smith=spec)).dumps_toml(),
            "instruction.md": b"scale(x) must give twice x.\n",
            "environment/recipe.toml": recipe.dumps_toml(),
            "solution/reference.patch": diff(store.scratch, base, fixed),
            "solution/solve.sh": b"#!/bin/sh\n",
            "tests/selection.json": Selection(tree=hidden, roots=("tests",), files=("tests/test_scale.py",)).dumps(),
            "tests/test.sh": b"#!/bin/sh\n",
        }
        for name, data in placed.items():
            path = store.layout.task(TASK) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return store.load(TASK)

    return store, write


def validated(store: Store, bundle: Bundle) -> Receipt:
    """A receipt from environments that differ in a variable; one called ``missing`` cannot be built."""

    def builder(choice: EnvironmentChoice) -> LayeredEnvironment:
        if choice.name == "missing":
            raise EnvironmentFailed("environment missing: no release of it can be installed here")
        own = build(choice, store.layout.environments)
        kit = choice.name.partition("-")[0]
        used = own.used.model_copy(update={"name": choice.name, "digest": kit.ljust(32, "0")})
        return replace(own, env={**own.env, "KIT": kit}, used=used)

    bench = Bench(store, make("host"), "cpu")
    return Validation(bundle, bench, repeats=2, builder=builder).receipt()


def test_the_environment_that_shows_the_change_is_found(task: tuple[Store, Callable[..., Bundle]]) -> None:
    store, write = task
    receipt = validated(store, write(("missing", "broken", "lenient", "lenient-again", "strict", "never")))
    assert receipt.verdict is Verdict.VALID
    assert receipt.environment is not None and receipt.environment.name == "strict"
    assert receipt.fail_to_pass == ("tests/test_scale.py::test_scale",)
    told = [one.partition(":")[0] for one in receipt.tried]
    assert told == ["missing", "broken", "lenient", "lenient-again"]
    assert receipt.tried[3] == "lenient-again: has the versions of lenient"


def test_where_none_shows_it_the_first_that_works_is_told_of(task: tuple[Store, Callable[..., Bundle]]) -> None:
    store, write = task
    receipt = validated(store, write(("broken", "lenient", "missing")))
    assert receipt.verdict is Verdict.INVALID and receipt.reasons[0].code == "no_fail_to_pass"
    assert receipt.environment is not None and receipt.environment.name == "lenient"
    assert receipt.pass_to_pass and [one.partition(":")[0] for one in receipt.tried] == ["broken", "missing"]


def test_where_nothing_works_the_last_fault_is_told(task: tuple[Store, Callable[..., Bundle]]) -> None:
    store, write = task
    receipt = validated(store, write(("missing", "broken")))
    assert receipt.verdict is not Verdict.VALID and receipt.reasons[0].code == "reference_fails"
