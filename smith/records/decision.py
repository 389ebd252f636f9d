"""What a decision says besides the verdict: how telling the tests are, and why nothing tells."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import StringConstraints

from smith.records.base import Record
from smith.records.results import Failure


class BaseFails(Record):
    """How the base fails at its most telling, over all fail-to-pass tests."""

    failure: Failure
    rank: int
    """Place of ``failure`` in the order of :class:`Failure`; 1 (an assertion) tells most about the kernel."""
    weak: bool
    """Every fail-to-pass test fails for want of something (a name, a file, time), and none on a result."""


class NothingFails(StrEnum):
    """Why no test fails on the base and passes on the reference, as far as the facts tell."""

    INVISIBLE_HERE = "invisible_here"
    """A fix; tests that launch the kernels which it changes pass on both sides, so its fault does not show here."""
    NOT_LAUNCHED = "not_launched"
    """No test that passes launches a changed kernel."""
    NOT_COUNTED = "not_counted"
    """A fix, and launches are not counted on this device: whether its tests reach the change is not known."""
    NOT_A_FIX = "not_a_fix"
    """The change need not make any test fail on the base."""


Share = Annotated[str, StringConstraints(pattern=r"^\d+/\d+$")]


class PassRate(Record):
    """How often an unstable test passed, of how many runs, on each side: ``2/3``."""

    reference: Share
    nop: Share
