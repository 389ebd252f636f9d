"""Captured launches of kernels, and what came of compiling them for a target."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from smith.records.base import Record
from smith.records.compiled_files import FileFailure, FileReports

_Text = Annotated[str, StringConstraints(max_length=4096)]
_Word = Annotated[str, StringConstraints(max_length=600)]


class Argument(Record):
    """What of one argument, constant or launch option changes the code of a kernel."""

    name: _Word = ""
    kind: Literal[
        "pointer", "integer", "float", "boolean", "none", "string", "dtype", "torch_dtype", "function", "tuple", "list",
        "descriptor", "other",
    ]  # fmt: skip
    constant: bool = False
    """Declared ``tl.constexpr``, or a launch option: ``text`` is the value. Otherwise it is the type."""
    text: _Text = ""
    """The element type of a pointer; ``i32``, ``i64`` or ``u64``; a constant as text, a float in hexadecimal; a
    function as ``module:qualified name:line``; the type of anything else."""
    traits: tuple[Literal["aligned", "within_2gib", "one", "divisible_by_16", "option", "wrapped"], ...] = ()
    """``option``: passed by a name that Triton takes as a launch option too. ``wrapped``: in a ``tl.constexpr``."""
    items: Annotated[tuple[Argument, ...], Field(max_length=64)] = ()


class Launch(Record):
    """One distinct launch of a kernel; the grid is that of the first such launch and changes no code."""

    module: _Word
    symbol: _Word
    """The kernel's qualified name in its module."""
    path: _Word
    """Its file, relative to the source root."""
    line: int
    arguments: Annotated[tuple[Argument, ...], Field(max_length=512)]
    options: Annotated[tuple[Argument, ...], Field(max_length=64)] = ()
    grid: Annotated[tuple[int, ...], Field(max_length=3)] = ()

    @property
    def kernel(self) -> str:
        """``path::qualified name``, as launches are counted by."""
        return f"{self.path}::{self.symbol}"

    @property
    def key(self) -> str:
        """Equal for launches that cannot differ in code, within one tree."""
        return json.dumps(self.model_dump(mode="json", exclude={"grid"}), sort_keys=True)


class CompileFailure(StrEnum):
    """Why a launch did not compile. Each is documented in docs/validation.md."""

    LANGUAGE = "language"
    """Triton's front end refuses the kernel."""
    BACK_END = "back_end"
    """A pass, LLVM, the assembler or the linker fails."""
    BINDING = "binding"
    """Triton does not accept an argument or option, in this version or for this target."""
    OUT_OF_RESOURCES = "out_of_resources"
    """It compiles, and needs more LDS or shared memory than the target has."""
    TIMEOUT = "timeout"
    """Says as much about the machine as about the kernel."""
    CRASHED = "crashed"
    """The compiler's process ended."""
    IMPORT_FAILED = "import_failed"
    """The kernel's module cannot be imported without the interpreter."""
    NOT_FOUND = "not_found"
    """The module holds no such jit function: it is made while a program runs."""
    UNSUPPORTED_ARGUMENT = "unsupported_argument"
    """No stand-in can be made for an argument."""
    NOT_TRIED = "not_tried"
    """Too many compilers were lost before, the time was up, or this triton has no back end for the target."""

    @property
    def says_something(self) -> bool:
        """Whether it is a fact about the kernel, and not about what can be done here."""
        return self in _ABOUT_THE_KERNEL


_ABOUT_THE_KERNEL = frozenset(
    {
        CompileFailure.LANGUAGE, CompileFailure.BACK_END, CompileFailure.BINDING, CompileFailure.OUT_OF_RESOURCES,
        CompileFailure.CRASHED,
    }
)  # fmt: skip


def _unknown(value: object) -> bool:
    return value is None


class KernelFacts(Record):
    """What the machine code says. What is not known is left out; 0 is a figure."""

    vgpr: int | None = Field(default=None, exclude_if=_unknown)
    """Vector registers a lane, accumulation registers included; NVIDIA: registers a thread."""
    sgpr: int | None = Field(default=None, exclude_if=_unknown)
    agpr: int | None = Field(default=None, exclude_if=_unknown)
    vgpr_spills: int | None = Field(default=None, exclude_if=_unknown)
    sgpr_spills: int | None = Field(default=None, exclude_if=_unknown)
    lds_bytes: int | None = Field(default=None, exclude_if=_unknown)
    """LDS, or shared memory, of a workgroup."""
    scratch_bytes: int | None = Field(default=None, exclude_if=_unknown)
    """Private memory a lane; NVIDIA: stack and local memory a thread."""
    occupancy: int | None = Field(default=None, exclude_if=_unknown)
    """Waves per SIMD; NVIDIA: warps per scheduler."""
    waves: int | None = Field(default=None, exclude_if=_unknown)
    """Waves (warps) of a workgroup."""
    matrix_instructions: int | None = Field(default=None, exclude_if=_unknown)
    """Instructions in the code, not executions."""
    wide_loads: int | None = Field(default=None, exclude_if=_unknown)
    """Loads of 16 bytes a lane in the code."""
    code_bytes: int | None = Field(default=None, exclude_if=_unknown)


class CompiledLaunch(Record):
    """What came of one launch on one target."""

    failure: CompileFailure | None = None
    detail: _Word = ""
    facts: KernelFacts | None = None
    key: _Word = ""
    """Digest of all that the machine code is made of; empty where the kernel was not reached."""
    dropped: tuple[_Word, ...] = ()
    """Launch options that the target does not know."""
    cached: bool = False
    seconds: float = 0.0


class CompiledFile(Record):
    """What came of one file on one target."""

    path: _Word
    failure: FileFailure | None = None
    detail: _Word = ""
    kernels: Annotated[dict[str, KernelFacts], Field(max_length=2000)] = {}
    """By name, with template arguments and without parameters."""
    stand_ins: bool = False
    """Whether it was compiled with stand-in headers in place of ROCm's."""
    seconds: float = 0.0


class SideFacts(KernelFacts):
    """One kernel on one side: how many distinct launches, how many failed, and the worst figures of the others."""

    launches: int = 0
    failed: int = Field(default=0, exclude_if=lambda failed: not failed)


class KernelReport(SideFacts):
    """One kernel of the reference, with the base's figures beside its own where the base launches it too."""

    symbol: str
    """``path::qualified name``."""
    baseline: SideFacts | None = Field(default=None, exclude_if=_unknown)


class FailedLaunches(Record):
    """Launches of one kernel that failed in one way."""

    side: Literal["base", "reference", "submission"]
    symbol: str
    code: CompileFailure
    detail: str
    launches: int


class TargetReport(Record):
    """What the launches captured in one validation give on one target.

    The verdict is about the reference: ``compiled``, every launch did; ``failed``, at least one cannot; and
    ``not_compilable``, nothing failed, but nothing was launched or something could not be tried here.
    """

    verdict: Literal["compiled", "failed", "not_compilable"]
    launches: int
    """Distinct launches captured on the reference."""
    compiled: int
    base_launches: int = 0
    base_compiled: int = 0
    not_captured: int = Field(default=0, exclude_if=lambda count: not count)
    """Launches, over both sides, that were too many or too large to be told."""
    failures: tuple[FailedLaunches, ...] = Field(default=(), exclude_if=lambda failures: not failures)
    dropped_options: tuple[str, ...] = Field(default=(), exclude_if=lambda options: not options)
    """Launch options of another vendor's targets, left out here."""
    compiler: str = ""
    """The version of triton."""
    caveat: str = Field(default="", exclude_if=lambda caveat: not caveat)
    """What that compiler leaves out."""
    reason: str = Field(default="", exclude_if=lambda reason: not reason)
    """Why nothing was tried."""
    files: FileReports | None = Field(default=None, exclude_if=_unknown)
    """Changed files of device code in C++, compiled one by one; their kernels have no launches."""
    kernels: tuple[KernelReport, ...] = ()
