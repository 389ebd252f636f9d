"""A recipe: what one upstream needs to be built and tested, written by a user as a few lines of TOML."""

from __future__ import annotations

from datetime import date

from smith.records.base import Document, Name, Record


class EnvironmentChoice(Record):
    """One layered environment: packages on top of the one that smith runs in."""

    name: Name
    merged_after: date | None = None
    """First merge date that this fits (inclusive)."""
    merged_before: date | None = None
    """Merge date from which on it no longer fits (exclusive)."""
    packages: tuple[str, ...] = ()
    """Requirement specifiers, installed without ever replacing torch."""
    as_of: date | None = None
    """Only releases published before this day are taken, of these packages and of what they need in turn."""
    python: str | None = None
    """A version specifier that the Python below must fulfil, such as ``>=3.10``."""

    def fits(self, day: date) -> bool:
        """Whether a pull request merged on ``day`` is of this environment's era."""
        return not (
            (self.merged_after and day < self.merged_after) or (self.merged_before and day >= self.merged_before)
        )


class Workload(Record):
    """What is timed for performance tasks."""

    file: str
    """A Python file, relative to the recipe, that defines ``cases()``."""
    paths: tuple[str, ...] = ("**",)
    """Globs: it is for pull requests that touch one of these."""


class Recipe(Document):
    """How one upstream is built and tested."""

    repo: str
    """``owner/name``."""
    python_path: tuple[str, ...] = (".",)
    """Folders relative to the source root that go on ``PYTHONPATH``."""
    build: tuple[tuple[str, ...], ...] = ()
    """Commands run in the source root, in the sandbox, after patching and before tests.

    ``python`` is the environment's."""
    build_timeout_s: int = 600
    env: dict[str, str] = {}
    prelude: str | None = None
    """A Python file, relative to the recipe, executed after the device is set up and before tests are collected."""
    test_roots: tuple[str, ...] = ()
    """Folders that hold tests and their support; found by name where empty."""
    pytest_args: tuple[str, ...] = ()
    system_packages: tuple[str, ...] | None = None
    """Debian packages for the container; a layered environment has what the machine has."""
    workloads: tuple[Workload, ...] = ()
    environments: tuple[EnvironmentChoice, ...] = (EnvironmentChoice(name="default"),)

    def candidates(self, merged_on: date) -> tuple[EnvironmentChoice, ...]:
        """The environments to try for a pull request merged on that day: those of its era first, in order."""
        fitting = [e for e in self.environments if e.fits(merged_on)]
        return tuple(fitting + [e for e in self.environments if not e.fits(merged_on)])
