"""How a test failed: from the types of its exceptions and from where they were raised, never from a log.

The words are those of ``smith.records.results.Failure``. Text is read in one place only: torch raises a plain
``RuntimeError`` where the memory of the host is used up.
"""

from __future__ import annotations

import errno
from typing import Any

import pytest

NO_DEVICE_FRAMES = frozenset(
    {("torch.cuda", "_lazy_init"), ("torch.xpu", "_lazy_init"), ("triton.runtime.driver", "_create_driver")}
)
"""Module and function in which torch and Triton say that there is no device; torch partly as an ``AssertionError``."""
NO_DEVICE_CODES = frozenset({35, 100, 101})
"""Of CUDA and HIP alike: driver insufficient, no device, invalid device."""
NO_MEMORY_CODE = 2
COMPILER_FRAMES = ("torch.utils.cpp_extension", "torch._inductor.cpp_builder", "torch.utils.hipify")
_COMPILE = frozenset({"CompilationError", "OutOfResources", "PTXASError"})
_COMPILE_OTHER = frozenset({"CompileError", "LinkError", "CppCompileError"})
_HOST_MEMORY = "DefaultCPUAllocator: can't allocate memory"


def chain(error: BaseException | None) -> list[BaseException]:
    """``error`` and everything it was raised from or while handling, nearest first."""
    found: list[BaseException] = []
    while error is not None and all(error is not other for other in found) and len(found) < 50:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def failure_of(error: BaseException, collecting: bool = False) -> str:
    """How a test failed. What keeps a test from being run at all comes first: it says nothing about the code."""
    links = _causes(error) if isinstance(error, (AssertionError, pytest.fail.Exception)) else chain(error)
    if any(_no_device(each) for each in links):
        return "device_missing"
    if any(_no_memory(each) for each in links):
        return "out_of_memory"
    if collecting:
        return "collection"
    if any(_of_compiler(each) for each in links):
        return "compile"
    if any(_of_kernel(each) for each in chain(error)):
        return "kernel_error"
    if isinstance(error, (AssertionError, pytest.fail.Exception)):
        return "assertion"
    if isinstance(error, ImportError):
        return "import"
    if isinstance(error, (TypeError, AttributeError, NameError)):
        return "interface"
    return "other"


def _causes(error: BaseException) -> list[BaseException]:
    """Only what ``error`` was raised *from*: a test that handles a failing try and then judges has judged."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and all(each is not other for other in found):
        found.append(each)
        each = each.__cause__
    return found


def _raised_in(error: BaseException) -> tuple[str, str]:
    """Module and function of the innermost frame of Python."""
    trace = error.__traceback__
    if trace is None:
        return "", ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__", "")), trace.tb_frame.f_code.co_name


def _passed_through(error: BaseException, modules: tuple[str, ...]) -> bool:
    trace = error.__traceback__
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")) in modules:
            return True
        trace = trace.tb_next
    return False


def _names(error: BaseException, package: str) -> set[str]:
    """The classes of ``error`` that a package defines."""
    kinds: Any = type(error).__mro__
    return {c.__name__ for c in kinds if str(c.__module__) == package or str(c.__module__).startswith(f"{package}.")}


def _accelerator_code(error: BaseException) -> int | None:
    """The status that a GPU's runtime gave, where torch raised an error for one."""
    code = getattr(error, "error_code", None)
    return code if "AcceleratorError" in _names(error, "torch") and isinstance(code, int) else None


def _no_device(error: BaseException) -> bool:
    return _raised_in(error) in NO_DEVICE_FRAMES or _accelerator_code(error) in NO_DEVICE_CODES


def _no_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or "OutOfMemoryError" in _names(error, "torch"):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    if _accelerator_code(error) == NO_MEMORY_CODE:
        return True
    return type(error) is RuntimeError and any(_HOST_MEMORY in part for part in error.args if isinstance(part, str))


def _of_compiler(error: BaseException) -> bool:
    if _names(error, "triton") & _COMPILE or _names(error, "torch") & _COMPILE_OTHER:
        return True
    if type(error).__name__ in _COMPILE_OTHER and str(type(error).__module__).partition(".")[0] in (
        "distutils", "setuptools",
    ):  # fmt: skip
        return True
    return not isinstance(error, ImportError) and _passed_through(error, COMPILER_FRAMES)


def _of_kernel(error: BaseException) -> bool:
    return bool({"InterpreterError", "AutotunerError"} & _names(error, "triton")) or bool(
        {"AcceleratorError"} & _names(error, "torch")
    )
