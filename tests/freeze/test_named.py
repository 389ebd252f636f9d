"""Whether a failure on the base is about a name that the instruction does not give."""

from __future__ import annotations

import pytest

from smith.freeze.named import missing_name, unnamed
from smith.freeze.overlap import Addition
from smith.records.results import Failure, Outcome, TestResult

REFERENCE = Addition({"pkg/fresh.py": ("def norm(x, eps=0): ...",)}, {})


def result(message: str, failure: Failure = Failure.INTERFACE) -> TestResult:
    return TestResult(id="t.py::test", outcome=Outcome.FAILED, failure=failure, message=message)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("ImportError: cannot import name 'norm' from 'pkg.ops' (pkg/ops.py)", "norm"),
        ("ModuleNotFoundError: No module named 'pkg.fresh'", "fresh"),
        ("AttributeError: module 'pkg' has no attribute 'norm'", "norm"),
        ("AttributeError: 'Layer' object has no attribute 'norm'", "norm"),
        ("AttributeError: 'NoneType' object has no attribute 'norm'", None),
        ("TypeError: scale() got an unexpected keyword argument 'eps'", "eps"),
        ("TypeError: Layer.forward() got an unexpected keyword argument 'eps'", "eps"),
        ("TypeError: norm() takes 1 positional argument but 2 were given", "norm"),
        ("TypeError: unsupported operand type(s) for +: 'int' and 'str'", None),
        ("AssertionError: cannot import name 'norm' from 'x'", "norm"),
    ],
)
def test_the_name_is_read_from_pythons_own_messages(message: str, name: str | None) -> None:
    assert missing_name(result(message)) == name


def test_other_failures_are_never_about_the_interface() -> None:
    message = "ImportError: cannot import name 'norm' from 'pkg.ops'"
    assert missing_name(result(message, Failure.ASSERTION)) is None
    assert missing_name(result(message, Failure.COLLECTION)) == "norm"


def test_only_what_the_reference_adds_and_the_instruction_lacks_counts() -> None:
    missing = result("ImportError: cannot import name 'norm' from 'pkg.ops'", Failure.IMPORT)
    assert unnamed(missing, "Rows are wrong.", REFERENCE) == "norm"
    assert unnamed(missing, "`def norm(x)`", REFERENCE) is None
    assert unnamed(missing, "Rows are wrong.", Addition({}, {})) is None
    module = result("ModuleNotFoundError: No module named 'pkg.fresh'", Failure.COLLECTION)
    assert unnamed(module, "Rows are wrong.", REFERENCE) == "fresh"
