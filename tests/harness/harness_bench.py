"""Tiny trees to test, and an environment made of the Python that runs these tests."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smith.harness.place import Place
from smith.harness.run import Collection, collect, run
from smith.records.receipt import UsedEnvironment
from smith.records.recipe import Recipe
from smith.records.results import TestResult, TestRun
from smith.sandbox import Sandbox


@dataclass(frozen=True)
class OwnEnvironment:
    """The interpreter of this very process."""

    python: Path = Path(os.path.abspath(sys.executable))
    binds: Sequence[Path] = (Path(sys.prefix), Path(sys.base_prefix))
    env: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> UsedEnvironment:
        return UsedEnvironment(name="own", digest="0" * 64)


@dataclass
class Bench:
    """One place with a tree in it, and short ways to run its tests."""

    sandbox: Sandbox
    place: Place
    recipe: Recipe = field(default_factory=lambda: Recipe(repo="o/r"))
    device: str = "cpu"
    prelude: Path | None = None
    environment: OwnEnvironment = field(default_factory=OwnEnvironment)

    def write(self, name: str, text: str) -> None:
        path = self.place.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def collect(self, *files: str, wall_s: float = 60) -> Collection:
        return collect(
            self.sandbox, self.place, self.environment, self.recipe, self.device, files,
            prelude=self.prelude, wall_s=wall_s,
        )  # fmt: skip

    def run(
        self,
        *ids: str,
        id_timeout_s: float = 20,
        wall_s: float = 60,
        stop_after_s: float | None = None,
        source_writable: bool = False,
        spill: Path | None = None,
    ) -> TestRun:
        return run(
            self.sandbox, self.place, self.environment, self.recipe, self.device, ids,
            id_timeout_s=id_timeout_s, wall_s=wall_s, prelude=self.prelude, stop_after_s=stop_after_s,
            source_writable=source_writable, spill=spill,
        )  # fmt: skip

    def one(self, text: str, wall_s: float = 60) -> tuple[TestResult, TestRun]:
        """Run the one test ``test_it`` of a file."""
        self.write("test_one.py", text)
        done = self.run("test_one.py::test_it", wall_s=wall_s)
        return done.results[0], done
