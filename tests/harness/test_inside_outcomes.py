"""Failure kinds come from exceptions, sizes from parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def caught(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def raised_by(module: str, function: str, error: BaseException) -> BaseException:
    """``error`` as raised by a function of this name in a module of that name."""
    scope: dict[str, Any] = {"__name__": module, "error": error}
    exec(f"def {function}():\n    raise error\n", scope)
    return caught(scope[function])


def of_class(module: str, name: str, base: type[Exception] = RuntimeError, **fields: object) -> Exception:
    return type(name, (base,), {"__module__": module, **fields})("x")  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (raised_by("torch.cuda", "_lazy_init", AssertionError("not compiled")), "device_missing"),
        (raised_by("torch.cuda", "_lazy_init", RuntimeError("no GPUs")), "device_missing"),
        (raised_by("triton.runtime.driver", "_create_driver", RuntimeError("0 active")), "device_missing"),
        (raised_by("lab.cuda", "_lazy_init", RuntimeError("x")), "other"),
        (of_class("torch", "AcceleratorError", error_code=100), "device_missing"),
        (of_class("torch", "AcceleratorError", error_code=2), "out_of_memory"),
        (of_class("torch", "AcceleratorError", error_code=700), "kernel_error"),
        (of_class("lab", "AcceleratorError", error_code=700), "other"),
        (of_class("torch", "OutOfMemoryError"), "out_of_memory"),
        (MemoryError(), "out_of_memory"),
        (OSError(12, "x"), "out_of_memory"),
        (OSError(2, "x"), "other"),
        (of_class("triton.compiler.errors", "CompilationError", Exception), "compile"),
        (of_class("triton.runtime.errors", "OutOfResources", Exception), "compile"),
        (of_class("torch._inductor.exc", "CppCompileError"), "compile"),
        (of_class("setuptools._distutils.errors", "CompileError", Exception), "compile"),
        (of_class("lab.errors", "CompileError", Exception), "other"),
        (raised_by("torch.utils.cpp_extension", "_run_ninja_build", RuntimeError("x")), "compile"),
        (raised_by("torch.utils.cpp_extension", "load", ImportError("x")), "import"),
    ],
)
def test_failures_are_told_by_type_and_by_where_they_were_raised(error: BaseException, kind: str) -> None:
    assert failure_of(error) == kind


def test_a_device_that_is_really_missing_and_memory_that_is_really_used_up_are_told() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        assert failure_of(caught(lambda: torch.zeros(1, device="cuda"))) == "device_missing"
        assert failure_of(caught(lambda: torch.zeros(1, device="cuda")), collecting=True) == "device_missing"
    assert failure_of(caught(lambda: torch.zeros(1 << 50))) == "out_of_memory"
    numpy = pytest.importorskip("numpy")
    assert failure_of(caught(lambda: numpy.zeros(1 << 55))) == "out_of_memory"


def test_a_test_that_handles_a_missing_device_and_then_judges_has_judged() -> None:
    missing = raised_by("torch.cuda", "_lazy_init", RuntimeError("no GPUs"))

    def judges() -> None:
        try:
            raise missing
        except RuntimeError:
            assert 1 == 2

    def passes_on() -> None:
        try:
            raise missing
        except RuntimeError as error:
            raise ValueError("no device") from error

    assert failure_of(caught(judges)) == "assertion"
    assert failure_of(caught(passes_on)) == "device_missing"
