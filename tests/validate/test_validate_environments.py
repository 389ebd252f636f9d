"""Validation over several environments: the next is tried before a task is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_tasks import new_store, write_task

from smith.environment.installer import EnvironmentFailed
from smith.environment.layers import LayeredEnvironment, build
from smith.freeze.bundle import Bundle, Store
from smith.grade.trial import Bench
from smith.records.receipt import Receipt, Verdict
from smith.records.recipe import EnvironmentChoice
from smith.sandbox import make
from smith.validate.validate import Validation

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


Task = tuple[Store, Callable[[tuple[str, ...]], Bundle]]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A data repository, and how to write its one task with environments of these names."""
    store = new_store(tmp_path / "data")
    return store, lambda names: write_task(store, {"tests/test_scale.py": TEST}, environments=names)


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


def test_the_environment_that_shows_the_change_is_found(task: Task) -> None:
    store, write = task
    receipt = validated(store, write(("missing", "broken", "lenient", "lenient-again", "strict", "never")))
    assert receipt.verdict is Verdict.VALID
    assert receipt.environment is not None and receipt.environment.name == "strict"
    assert receipt.fail_to_pass == ("tests/test_scale.py::test_scale",)
    told = [one.partition(":")[0] for one in receipt.tried]
    assert told == ["missing", "broken", "lenient", "lenient-again"]
    assert receipt.tried[3] == "lenient-again: has the versions of lenient"


def test_where_none_shows_it_the_first_that_works_is_told_of(task: Task) -> None:
    store, write = task
    receipt = validated(store, write(("broken", "lenient", "missing")))
    assert receipt.verdict is Verdict.INVALID and receipt.reasons[0].code == "no_fail_to_pass"
    assert receipt.environment is not None and receipt.environment.name == "lenient"
    assert receipt.pass_to_pass and [one.partition(":")[0] for one in receipt.tried] == ["broken", "missing"]


def test_where_nothing_works_the_last_fault_is_told(task: Task) -> None:
    store, write = task
    receipt = validated(store, write(("missing", "broken")))
    assert receipt.verdict is not Verdict.VALID and receipt.reasons[0].code == "reference_fails"
