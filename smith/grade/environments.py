"""Layered environments by name, built once and shared by all trials of a process."""

from __future__ import annotations

import threading
from pathlib import Path

from smith.environment.base import TORCH
from smith.environment.installer import EnvironmentFailed
from smith.environment.layers import REPORTED, LayeredEnvironment, build
from smith.environment.requirements import requirement_name
from smith.errors import Stale
from smith.records.receipt import Receipt, UsedEnvironment
from smith.records.recipe import EnvironmentChoice, Recipe


class Environments:
    """Builds environments below ``root`` as they are asked for. Safe to use from several threads."""

    def __init__(self, root: Path, logs: Path) -> None:
        self._root, self._logs = root, logs
        self._built: dict[str, LayeredEnvironment] = {}
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}

    def build(self, choice: EnvironmentChoice) -> LayeredEnvironment:
        """The environment of ``choice``. Raises :class:`smith.environment.layers.EnvironmentFailed`."""
        key = choice.model_dump_json()
        with self._lock:
            own = self._locks.setdefault(key, threading.Lock())
        # One lock each: who needs another environment does not wait while this one is installed.
        with own:
            if key not in self._built:
                self._built[key] = build(choice, self._root, log=self._logs / f"environment-{choice.name}.log")
            return self._built[key]

    def for_receipt(self, recipe: Recipe, receipt: Receipt) -> LayeredEnvironment:
        """The environment in which a receipt's expectations were found.

        Where the recipe now comes to other versions, the receipt's are installed; where those cannot be had here, the
        recipe's are used, which a grade says. Raises :class:`Stale` where the recipe no longer has the environment, and
        :class:`smith.environment.layers.EnvironmentFailed`.
        """
        used = receipt.environment
        choice = next((one for one in recipe.environments if used is not None and one.name == used.name), None)
        if choice is None or used is None:
            name = used.name if used is not None else ""
            raise Stale(f"{receipt.task}: the recipe has no environment {name!r}", hint="validate the task again")
        failure: EnvironmentFailed | None = None
        try:
            made = self.build(choice)
            if made.used.digest == used.digest or not choice.packages:
                return made
        except EnvironmentFailed as error:
            failure = error
        try:
            return self.build(choice.model_copy(update={"packages": exact_packages(choice, used), "as_of": None}))
        except EnvironmentFailed:
            if failure is not None:
                raise failure from None
            return made


def exact_packages(choice: EnvironmentChoice, used: UsedEnvironment) -> tuple[str, ...]:
    """The packages of the layer in which a receipt was made, as ``name==version``.

    torch and its kin lie below every layer, and so do Triton, numpy and pytest unless the choice asks for them.
    """
    asked = {requirement_name(package) for package in choice.packages}
    below = {name for name in REPORTED if name in TORCH or name not in asked}
    return tuple(f"{name}=={version}" for name, version in sorted(used.packages.items()) if name not in below)
