"""Changed files of device code in C++, compiled one by one without any launch."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from smith.records.base import Record


class FileFailure(StrEnum):
    """Why a file gave no kernels. Each is documented in docs/validation.md."""

    MISSING_HEADER = "missing_header"
    """It includes a header that is not here."""
    STAND_IN = "stand_in"
    """The front end stops, and a name that the stand-in headers lack may be why."""
    NO_KERNEL = "no_kernel"
    """It compiles to no kernel: device functions, or templates that nothing in it instantiates."""
    LANGUAGE = "language"
    """The front end refuses it."""
    BACK_END = "back_end"
    """It is parsed, and the target's back end fails."""
    CRASHED = "crashed"
    """The compiler's process ended."""
    TIMEOUT = "timeout"
    NOT_TRIED = "not_tried"
    """There is no clang, it does not know the target, or the file is no text."""

    @property
    def says_something(self) -> bool:
        """Whether it is a fact about the file, and not about what can be done here."""
        return self in (FileFailure.LANGUAGE, FileFailure.BACK_END, FileFailure.CRASHED)


class FileReport(Record):
    """One changed file on one side."""

    side: Literal["base", "reference", "submission"]
    path: str
    kernels: int = 0
    """How many kernels it compiled to; templates count once for each instance."""
    failure: FileFailure | None = Field(default=None, exclude_if=lambda failure: failure is None)
    detail: str = Field(default="", exclude_if=lambda detail: not detail)


class FileReports(Record):
    """The changed files of a task on one target."""

    compiler: str
    """The first line of what the compiler says of its version."""
    stand_ins: bool = Field(default=False, exclude_if=lambda used: not used)
    files: tuple[FileReport, ...]
