"""Failure kinds come from exceptions, sizes from parameters."""

from __future__ import annotations

import pytest

from smith.inside.failures import failure_of
from smith.inside.outcomes import not_interpretable, relative, size_of, text_of


class InterpreterError(Exception):
    """Stands for Triton's."""


InterpreterError.__module__ = "triton.runtime.errors"


def raised_from(error: Exception, cause: Exception) -> Exception:
    try:
        raise error from cause
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AssertionError("x"), "assertion"),
        (pytest.fail.Exception("x"), "assertion"),
        (InterpreterError("x"), "kernel_error"),
        (raised_from(InterpreterError("x"), TypeError("y")), "kernel_error"),
        (raised_from(RuntimeError("x"), InterpreterError("y")), "kernel_error"),
        (ModuleNotFoundError("x"), "import"),
        (TypeError("x"), "interface"),
        (AttributeError("x"), "interface"),
        (UnboundLocalError("x"), "interface"),
        (KeyError("x"), "other"),
    ],
)
def test_failure_kinds(error: BaseException, kind: str) -> None:
    assert failure_of(error) == kind
    assert failure_of(error, collecting=True) == "collection"


def test_a_refusal_is_found_however_deep_and_in_a_circle() -> None:
    inner = RuntimeError("smith: not interpretable: tl.gather")
    outer = raised_from(ValueError("x"), inner)
    assert not_interpretable(outer) and not not_interpretable(ValueError("x")) and not not_interpretable(None)
    inner.__cause__ = outer
    assert not_interpretable(outer)


def test_messages_are_short() -> None:
    assert len(text_of(ValueError("x" * 9999))) == 2000
    assert len(text_of(ValueError("x\n" * 99)).splitlines()) == 12


def test_sizes() -> None:
    assert size_of({"a": 2, "b": (3, [4, -1, 0]), "c": True, "d": 0.5, "e": "9"}) == 24
    assert size_of({"a": 2**40, "b": 2**40}) == 2**53


def test_paths_are_relative_to_the_root() -> None:
    assert relative("/r/a/k.py::f.<locals>.g", "/r") == "a/k.py::f.<locals>.g"
    assert relative("a/k.py::f", "/r") == "a/k.py::f"
    assert relative("/elsewhere/k.py::f", "/r") == "/elsewhere/k.py::f"
