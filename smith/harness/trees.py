"""Run tests of several trees in one sandbox: libraries are loaded once, and each tree has processes of its own.

Every tree is shown read-only, and between two of them all that could be written to is emptied and every process is
ended, so nothing of one reaches the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smith.harness.environment import TestEnvironment
from smith.harness.place import Place
from smith.harness.run import Group, plan_of, run_of, sessions
from smith.harness.stage import Stage
from smith.records.recipe import Recipe
from smith.records.results import TestRun
from smith.sandbox.base import Sandbox


@dataclass(frozen=True)
class Series:
    """A tree, built where it has to be, and what is run of it."""

    source: Path
    groups: Sequence[Group]


def run_series(
    sandbox: Sandbox,
    place: Place,
    environment: TestEnvironment,
    recipe: Recipe,
    device: str,
    series: Sequence[Series],
    *,
    prelude: Path | None = None,
    seed: int = 0,
    shift: int = 0,
    begin_until_s: float = math.inf,
) -> list[list[TestRun] | None]:
    """Run each series, one after the other; a result for each group, None for a series that was not begun.

    That is so after ``begin_until_s``, and behind one that took the whole sandbox along (by its memory). A group that
    stops at a failure stops its own series only. ``seed`` is that of generators which tests do not seed; what they seed
    themselves is moved by ``shift``. ``place`` holds the scratch space.
    """
    trees = tuple(one.source for one in series)
    stage = Stage(sandbox, place, environment, recipe, device, prelude, seed, trees)
    plans = []
    for number, one in enumerate(series):
        for group in one.groups:
            plan, ids = plan_of(group)
            more = {"capture": None, "root": stage.tree(number), "series": number, "shift": shift}
            plans.append(({**plan, **more}, ids))
    came = iter(sessions(stage, plans, begin_until_s=begin_until_s))
    found: list[list[TestRun] | None] = []
    for one in series:
        mine = [(group, next(came)) for group in one.groups]
        begun = any(session.begun for _, session in mine)
        found.append([run_of(group, session) for group, session in mine] if begun else None)
    return found
