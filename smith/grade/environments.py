"""Layered environments by name, built once and shared by all trials of a process."""

from __future__ import annotations

import threading
from pathlib import Path

from smith.environment.layers import LayeredEnvironment, build
from smith.errors import Stale
from smith.records.receipt import Receipt
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

        Raises :class:`Stale` where the recipe no longer has it.
        """
        name = receipt.environment.name if receipt.environment else ""
        for choice in recipe.environments:
            if choice.name == name:
                return self.build(choice)
        raise Stale(f"{receipt.task}: the recipe has no environment {name!r}", hint="validate the task again")
