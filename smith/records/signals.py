"""What a merged pull request says about itself besides its change: hints for choosing, never for judging."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from smith.records.base import Record


class Reach(StrEnum):
    """How a test file was tied to changed kernels."""

    CHANGED = "changed"
    """The pull request changed it, and it imports (or includes) the changed code."""
    CHANGED_ALONE = "changed_alone"
    """The pull request changed it; nothing in it leads to the changed code."""
    IMPORTS = "imports"
    """It was not changed, and reaches the changed code through its imports."""


class TestFile(Record):
    """A test that exercises changed kernels, on the merged side."""

    path: str
    runner: Literal["pytest", "script", "cpp", "benchmark", "support"]
    """``script`` has a main with arguments and no test function; ``support`` is imported by tests."""
    reach: Reach
    kernels: tuple[str, ...] = ()
    """``path::symbol`` of the changed kernels that it leads to."""
    distance: int | None = None
    """How many imports lie between; 0 where the test imports the file itself."""


# Not a test class, whatever pytest may think of the name.
TestFile.__test__ = False  # type: ignore[attr-defined]


class Claim(Record):
    """A performance claim in the words of title, body or commits, with what could be read out of it."""

    text: str
    """The sentence or table cell, at most 200 characters."""
    where: Literal["title", "body", "commits"]
    value: float
    unit: Literal["x", "%", "s", "ms", "us", "ns", "TFLOPS", "GB/s", "GB", "MB", "tok/s"]
    direction: Literal["faster", "slower", "less", "more", "unknown"] = "unknown"
    device: str | None = None
    """The device that the words name, such as ``MI300X`` or ``H100``."""


class Signals(Record):
    """Hints read out of a pull request's words, its change and what came later."""

    operators: tuple[str, ...] = ()
    """Operator classes, the surest first: norm, attention, gemm, moe, quant, rope, loss, activation, ..."""
    devices: tuple[str, ...] = ()
    """Kinds and names of devices that titles, guards and paths name: rocm, cuda, MI300X, H100, ..."""
    architectures: tuple[str, ...] = ()
    """gfx942, sm_90, ..."""
    claims: tuple[Claim, ...] = ()
    later_fixes: tuple[int, ...] = ()
    """Numbers of later fixes that change a kernel which this one changed, nearest first."""
    reverted_by: str | None = None
    """``#N`` or the id of a landed commit."""
    lands_again: int | None = None
    """The reverted pull request that this one lands again."""
    landed_again_by: int | None = None
    configs: tuple[str, ...] = ()
    """Tuned configurations changed with it."""
    lines_added: int = 0
    """Lines with a text that was not there, in files that can hold kernels."""
    lines_removed: int = 0
