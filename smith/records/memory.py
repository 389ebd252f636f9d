"""A finding of the sanitizer: an access of a kernel to memory that a CPU forgives and a GPU may not."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from smith.records.base import Record

Text = Annotated[str, StringConstraints(max_length=500)]
Program = tuple[int, int, int]


class FindingKind(StrEnum):
    OUT_OF_BOUNDS_READ = "out_of_bounds_read"
    OUT_OF_BOUNDS_WRITE = "out_of_bounds_write"
    """Also an atomic operation."""
    UNINITIALISED_READ = "uninitialised_read"
    """Of memory that came from ``torch.empty`` or its kin and that nothing has written."""
    RACE = "race"
    """Two programs of one launch stored different values at one address, and no atomic orders them."""
    SAME_VALUE_WRITE = "same_value_write"
    """Two programs stored the same value at one address: no fault, only information."""
    OUTSIDE_VIEW = "outside_view"
    """Outside the view that was passed but inside its storage: no fault, only information."""

    @property
    def is_fault(self) -> bool:
        return self not in (FindingKind.SAME_VALUE_WRITE, FindingKind.OUTSIDE_VIEW)


class MemoryFinding(Record):
    """One line of a kernel that did something to memory; the figures are those of the first time."""

    kind: FindingKind
    kernel: Text
    """The kernel that was launched, ``path::qualified.name``."""
    function: Text
    """The jit function that the line belongs to: the kernel, or one that it calls."""
    path: Text
    line: int = Field(ge=0)
    program: Program
    other: Program | None = None
    """The program that had stored there before."""
    operation: Literal["load", "store", "atomic"]
    argument: Text
    """Name of the tensor argument that the pointer comes from; empty where that is not known."""
    offset: int | None = None
    """Elements from where the argument points to."""
    lanes: int = Field(ge=1)
    """Elements of the block for which it holds."""
    times: int = Field(ge=1)
    """Accesses of this line in the test for which it holds."""

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What makes two findings one."""
        return self.kind.value, self.kernel, self.path, self.line

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}"
        name = self.function.rpartition("::")[2]
        what = f"{self.operation} of {self.argument or 'a pointer of unknown origin'}"
        what += f"[{self.offset}]" if self.offset is not None else ""
        other = f" after program {self.other}" if self.other is not None else ""
        return f"{self.kind.value}: {what} at {place} in {name}, program {self.program}{other}"
