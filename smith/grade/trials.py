"""Several trials at once: trees of one task in one sandbox, so that its libraries are loaded only once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smith.grade.quiet import shared
from smith.grade.trial import Trial, grouped, join
from smith.harness.trees import Series, run_series
from smith.records.results import TestRun


def run_together(
    trials: Sequence[Trial],
    ids: Sequence[Sequence[str]],
    *,
    shift: int = 0,
    begin_until_s: float = math.inf,
    stop_at_failure: bool = True,
) -> list[TestRun | None]:
    """Run of each trial, all built, its ``ids``; a run for each, None for one that was not begun.

    A trial is given up at its first test that does not pass. ``shift`` moves every seed; ``begin_until_s`` seconds
    after the start no further trial is begun.
    """
    first = trials[0]
    limit = first.bundle.selection.id_timeout_s
    series = [
        Series(trial.place.source, grouped(trial.bundle, mine, limit, stop_at_failure=stop_at_failure))
        for trial, mine in zip(trials, ids, strict=True)
    ]
    with shared(first.bench.store.layout.quiet):
        runs = run_series(
            first.bench.sandbox,
            first.place,
            first.environment,
            first.bundle.recipe,
            first.bench.device,
            series,
            prelude=first.bundle.prelude,
            seed=shift,
            shift=shift,
            begin_until_s=begin_until_s,
        )
    return [None if some is None else join(some) for some in runs]
