"""A data repository with one tiny task in it, made without an upstream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

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
from smith.records.receipt import Receipt
from smith.records.recipe import EnvironmentChoice, Recipe
from smith.records.task import Metadata, Selection, SmithMetadata, Source, TaskFile, TaskName
from smith.sandbox import make
from smith.validate.validate import Validation

TASK = "lab__tiny-7"
BASE = {"tiny/__init__.py": "", "tiny/scale.py": "def scale(x):\n    return x\n"}
FIXED = {"tiny/scale.py": "def scale(x):\n    return 2 * x\n"}


def tree_of(store: Store, files: Mapping[str, str]) -> str:
    blobs = [(name, write_blob(store.scratch, text.encode())) for name, text in files.items()]
    return write_tree(store.scratch, [TreeEntry("100644", "blob", oid, name.encode()) for name, oid in blobs])


def new_store(root: Path) -> Store:
    run(["git", "init", "-q", root]).check()
    (root / MARKER).write_text("schema_version = 1\n")
    return Store(Layout(root))


def write_task(
    store: Store,
    tests: Mapping[str, str],
    *,
    base: Mapping[str, str] = BASE,
    fixed: Mapping[str, str] = FIXED,
    environments: Sequence[str] = ("default",),
    budget_s: float = 30.0,
    kind: Kind = Kind.FIX,
) -> Bundle:
    """Write the task whose fix turns ``base`` into ``fixed``, with hidden ``tests`` (path to text)."""
    before = tree_of(store, base)
    after = overlay(store.scratch, before, tree_of(store, fixed))
    hidden = tree_of(store, tests)
    for tree in (before, hidden):
        keep(store.data, store.scratch, tree)
    source = Source(
        repo="lab/tiny",
        url="local:lab/tiny",
        pr=7,
        base="2" * 40,
        base_tree=before,
        tree=before,
        merged="3" * 40,
        merged_at="2025-01-01T00:00:00+00:00",
    )
    spec = SmithMetadata(
        id=TASK,
        kind=kind,
        languages=("native",),
        devices=("cpu",),
        source=source,
        kernels=(KernelChange(path="tiny/scale.py", language="native"),),
        editable=("tiny/**",),
    )
    recipe = Recipe(repo="lab/tiny", environments=tuple(EnvironmentChoice(name=name) for name in environments))
    files = tuple(name for name in tests if name.rpartition("/")[2].startswith("test_"))
    placed = {
        "task.toml": TaskFile(task=TaskName(name=f"smith/{TASK}"), metadata=Metadata(smith=spec)).dumps_toml(),
        "instruction.md": b"scale(x) must give twice x.\n",
        "environment/recipe.toml": recipe.dumps_toml(),
        "solution/reference.patch": diff(store.scratch, before, after),
        "solution/solve.sh": b"#!/bin/sh\n",
        "tests/selection.json": Selection(tree=hidden, roots=("tests",), files=files, budget_s=budget_s).dumps(),
        "tests/test.sh": b"#!/bin/sh\n",
    }
    for name, data in placed.items():
        path = store.layout.task(TASK) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return store.load(TASK)


def validated(store: Store, bundle: Bundle, *, repeats: int = 3) -> Receipt:
    """A receipt from the environment of the Python that runs these tests, without isolation."""

    def builder(choice: EnvironmentChoice) -> LayeredEnvironment:
        return build(choice, store.layout.environments)

    return Validation(bundle, Bench(store, make("host"), "cpu"), repeats=repeats, builder=builder).receipt()
