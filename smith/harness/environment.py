"""What the harness asks of an environment; ``smith.environment`` builds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from smith.records.receipt import UsedEnvironment


class TestEnvironment(Protocol):
    """A Python with the packages that an upstream's tests need."""

    @property
    def python(self) -> Path:
        """The interpreter."""

    @property
    def binds(self) -> Sequence[Path]:
        """Absolute folders that a sandbox shows read-only at the same path, so that the interpreter runs."""

    @property
    def env(self) -> Mapping[str, str]:
        """Variables that it needs."""

    def describe(self) -> UsedEnvironment:
        """What is installed, for a receipt."""


# Not a test class, whatever pytest may think of the name; and not a member that an environment must have.
TestEnvironment.__test__ = False  # type: ignore[attr-defined]
