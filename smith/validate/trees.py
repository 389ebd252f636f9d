"""Faulty trees of one task tried several at a time, in one sandbox, for as long as the time lasts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from smith.freeze.bundle import Bundle
from smith.grade.trial import Bench, Trial, graded_tree, trial
from smith.grade.trials import run_together
from smith.harness.environment import TestEnvironment
from smith.records.results import Outcome, TestRun

TOGETHER = 8
"""Trees of one sandbox: enough to forget what starting it costs, few enough to tell how far it is."""
_T = TypeVar("_T")


def batched(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """``items`` in parts of at most ``size``."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


@dataclass(frozen=True)
class Ended:
    """What came of one tree: a run up to the first test that did not pass, or ``why`` there is none."""

    run: TestRun | None
    why: str = ""
    seconds: float = 0.0


@dataclass
class Trees:
    """Tries trees without hidden tests on ``ids``. After ``deadline`` (of the monotonic clock) none is begun.

    A tree lies elsewhere than a single one would. So that a test which minds the place is not taken for one that sees a
    fault, the solution is tried along the first time, with one test of each file; where one does not pass, every tree
    has a sandbox of its own.
    """

    bundle: Bundle
    bench: Bench
    environment: TestEnvironment
    ids: Sequence[str]
    solution: str
    deadline: float
    together: int = TOGETHER
    _trusted: bool = field(default=False, init=False)

    @property
    def left_s(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    def ended(self, trees: Sequence[str]) -> list[Ended | None]:
        """What came of each; None where the time was up before its turn."""
        if not trees or self.left_s <= 0:
            return [None] * len(trees)
        if len(trees) == 1 or self.together == 1:
            return [self._alone(tree) for tree in trees]
        done = self.in_one(trees)
        # Behind one that took the sandbox along none was begun.
        return [one or self._alone(tree) for tree, one in zip(trees, done, strict=True)]

    def runs(
        self, trees: Sequence[str], ids: Sequence[str], *, shift: int, stop_at_failure: bool
    ) -> list[TestRun | None]:
        """Run ``ids`` on each with every seed moved by ``shift``; None where it does not build or was not begun."""
        if not trees or self.left_s <= 0:
            return [None] * len(trees)
        with self._built(trees) as trials:
            good = [one for one in trials if one.build_error is None]
            runs = iter(
                run_together(
                    good,
                    [ids] * len(good),
                    shift=shift,
                    begin_until_s=self.left_s,
                    stop_at_failure=stop_at_failure,
                )
                if good
                else ()
            )
            return [next(runs) if one.build_error is None else None for one in trials]

    @contextlib.contextmanager
    def _built(self, trees: Sequence[str]) -> Iterator[list[Trial]]:
        store = self.bench.store
        with contextlib.ExitStack() as stack:
            yield [
                stack.enter_context(
                    trial(self.bench, self.bundle, self.environment, graded_tree(store, self.bundle, tree))
                )
                for tree in trees
            ]

    def in_one(self, trees: Sequence[str]) -> list[Ended | None]:
        """The same for trees in one sandbox; None also behind one that took the sandbox along."""
        first = {test.split("::", 1)[0]: test for test in reversed(self.ids)}
        control = [] if self._trusted else [self.solution]
        with self._built([*control, *trees]) as trials:
            good = [one for one in trials if one.build_error is None]
            wanted = [list(first.values())] * len(control) + [list(self.ids)] * (len(trials) - len(control))
            ids = [mine for mine, one in zip(wanted, trials, strict=True) if one.build_error is None]
            came = iter(run_together(good, ids, begin_until_s=max(0.0, self.left_s)) if good else ())
            ended = [_unbuilt(one) if one.build_error is not None else _of(next(came)) for one in trials]
        if control:
            self._trusted = _passed(ended.pop(0))
            if not self._trusted:
                self.together = 1
                return [None] * len(trees)
        return ended

    def _alone(self, tree: str) -> Ended | None:
        if self.left_s <= 0:
            return None
        with self._built([tree]) as (one,):
            if one.build_error is not None:
                return _unbuilt(one)
            began = time.monotonic()
            run = one.run(self.ids, stop_at_failure=True)
            return Ended(run, seconds=time.monotonic() - began)


def _unbuilt(one: Trial) -> Ended:
    return Ended(None, f"it does not build: {one.build_error}"[:300])


def _of(run: TestRun | None) -> Ended | None:
    return None if run is None else Ended(run, seconds=run.seconds)


def _passed(ended: Ended | None) -> bool:
    run = ended.run if ended is not None else None
    return run is not None and all(result.outcome is Outcome.PASSED for result in run.results)
