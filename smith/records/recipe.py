"""A recipe: what one upstream needs to be built and tested, written by a user as a few lines of TOML."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, Field

from smith.records.base import Document, Name, Record

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A name that ends in a dash would be removed and not installed.
_SYSTEM_PACKAGE = re.compile(r"[a-z0-9][a-z0-9.+-]*[a-z0-9+]")


def is_line(text: str) -> bool:
    """Whether ``text`` is one line of visible characters: what goes into container files and commands must be."""
    return text.isprintable()


def is_variable(name: str) -> bool:
    """Whether ``name`` can name an environment variable."""
    return _VARIABLE.fullmatch(name) is not None


def is_system_package(name: str) -> bool:
    """Whether ``name`` names a Debian package."""
    return _SYSTEM_PACKAGE.fullmatch(name) is not None


def is_folder(path: str) -> bool:
    """Whether ``path`` can stand in a list of folders that colons part."""
    return is_line(path) and ":" not in path


def is_specifier(text: str) -> bool:
    """Whether ``text`` restricts versions, as in ``>=3.10``."""
    try:
        return bool(str(SpecifierSet(text)))
    except InvalidSpecifier:
        return False


def _line(text: str) -> str:
    if not is_line(text):
        raise ValueError(f"{text!a} must be one line of visible characters")
    return text


def _variable(name: str) -> str:
    if not is_variable(name):
        raise ValueError(f"{name!a} can name no environment variable")
    return name


def _system_package(name: str) -> str:
    if not is_system_package(name):
        raise ValueError(f"{name!a} is no name of a Debian package")
    return name


def _folder(path: str) -> str:
    if not is_folder(path):
        raise ValueError(f"{path!a} can be no folder of a search path")
    return path


def _specifier(text: str) -> str:
    if not is_specifier(text):
        raise ValueError(f"{text!a} is no version specifier: write one as in '>=3.10'")
    return text


Line = Annotated[str, AfterValidator(_line)]
Folder = Annotated[str, AfterValidator(_folder)]


class EnvironmentChoice(Record):
    """One layered environment: packages on top of the one that smith runs in."""

    name: Name
    merged_after: date | None = None
    """First merge date that this fits (inclusive)."""
    merged_before: date | None = None
    """Merge date from which on it no longer fits (exclusive)."""
    packages: tuple[Line, ...] = ()
    """Requirement specifiers, installed without ever replacing torch."""
    as_of: date | Literal["merge"] | None = None
    """Only releases published before this day are taken, of these packages and of what they need in turn; ``merge``:
    those that there were when the pull request was merged."""
    python: Annotated[str, AfterValidator(_specifier)] | None = None
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
    python_path: tuple[Folder, ...] = (".",)
    """Folders relative to the source root that go on ``PYTHONPATH``."""
    build: tuple[tuple[Line, ...], ...] = ()
    """Commands run in the source root, in the sandbox, after patching and before tests.

    ``python`` is the environment's."""
    build_timeout_s: int = Field(default=600, gt=0)
    env: dict[Annotated[str, AfterValidator(_variable)], Line] = {}
    prelude: str | None = None
    """A Python file, relative to the recipe, executed after the device is set up and before tests are collected."""
    test_roots: tuple[Line, ...] = ()
    """Folders that hold tests and their support; found by name where empty."""
    pytest_args: tuple[str, ...] = ()
    system_packages: tuple[Annotated[str, AfterValidator(_system_package)], ...] | None = None
    """Debian packages for the container; a layered environment has what the machine has."""
    workloads: tuple[Workload, ...] = ()
    environments: tuple[EnvironmentChoice, ...] = (EnvironmentChoice(name="default"),)

    def candidates(self, merged_on: date) -> tuple[EnvironmentChoice, ...]:
        """The environments to try for a pull request merged on that day: those of its era first, in order."""
        fitting = [e for e in self.environments if e.fits(merged_on)]
        return tuple(fitting + [e for e in self.environments if not e.fits(merged_on)])

    def dated(self, merged_on: date) -> Recipe:
        """The recipe for a pull request merged on that day: what is as of the merge names its day."""
        day = day_after(merged_on)
        choices = tuple(e.model_copy(update={"as_of": day}) if e.as_of == "merge" else e for e in self.environments)
        return self.model_copy(update={"environments": choices})


def day_after(day: date) -> date:
    """The next day: what was published on the day of the merge itself may be what the pull request is about."""
    return day + timedelta(days=1) if day < date.max else day
