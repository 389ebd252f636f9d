"""Build a tree as its recipe says, in the sandbox, without network."""

from __future__ import annotations

import time
from pathlib import Path

from smith.harness.environment import TestEnvironment
from smith.harness.place import Place
from smith.harness.stage import Stage
from smith.process import Completed
from smith.records.recipe import Recipe
from smith.sandbox.base import Command, Limits, Sandbox


def build(
    sandbox: Sandbox,
    place: Place,
    environment: TestEnvironment,
    recipe: Recipe,
    device: str,
    *,
    prelude: Path | None = None,
    spill: Path | None = None,
) -> Completed | None:
    """Run the recipe's commands in the source root and return how the last one that ran ended; None without any.

    The first that fails is the last. The time limit is one for all of them.
    """
    stage = Stage(sandbox, place, environment, recipe, device, prelude)
    deadline = time.monotonic() + recipe.build_timeout_s
    done: Completed | None = None
    for command in recipe.build:
        place.refresh()
        left = max(0.1, deadline - time.monotonic())
        done = sandbox.run(
            Command(
                [str(environment.python) if word == "python" else word for word in command[:1]] + list(command[1:]),
                stage.source,
                Limits(wall_s=left),
                env=_build_env(stage),
                binds=stage.binds(source_writable=True, scratch_on_disk=True),
                spill=spill,
            )
        )
        if not done.ok:
            break
    return done


def _build_env(stage: Stage) -> dict[str, str]:
    """As for tests, without smith's own modules and without the device: a build is the upstream's alone."""
    env = stage.env()
    for name in ("SMITH_DEVICE", "SMITH_PRELUDE", "TRITON_INTERPRET"):
        if name not in stage.recipe.env:
            env.pop(name, None)
    inherited = stage.environment.env.get("PYTHONPATH")
    return {k: v for k, v in env.items() if k != "PYTHONPATH"} | ({"PYTHONPATH": inherited} if inherited else {})
