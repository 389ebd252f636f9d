"""How often a baseline is found the same as itself: ``make bench-aa [TRIALS=100] [PR=24] [FOREIGN=0.1] [LIMIT=900]``.

A task of the sample upstream whose kernels are native is frozen, and its start is measured against its start, as a
validation measures a reference, TRIALS times: builds, fresh processes, randomised blocks, the same rules. Every trial
is a line, and the last one says in how many the answer was ``same``. What others do on the machine voids blocks, and a
trial of nothing but void blocks is ``noisy``: the load is printed, and belongs to the figure. With FOREIGN=1 blocks are
not void because of others. Interrupted, it says what it has.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from smith import sample
from smith.environment.layers import build
from smith.freeze.bundle import Bundle, Store
from smith.freeze.freeze import Frozen, freeze
from smith.git.mirrors import open_upstream
from smith.grade.timed_processes import CannotTime
from smith.grade.timing import LIMIT_S, TooNoisy, measure
from smith.grade.trial import Bench, base_tree
from smith.mine import mine
from smith.paths import MARKER, Layout
from smith.process import run
from smith.records.receipt import Answer
from smith.sandbox import make

NOISY, BROKEN = "noisy", "cannot be timed"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print. Exit status 1 where fewer than 95 of 100 trials were the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--pr", type=int, default=24)
    parser.add_argument("--foreign", type=float, default=0.1, help="share of the processors that others may use")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds after which a trial begins no block")
    asked = parser.parse_args(argv)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        store, bundle = _frozen(Path(place) / "data", asked.pr, asked.foreign)
        bench = Bench(store, make("bubblewrap"), "cpu")
        environment = build(bundle.recipe.environments[0], store.layout.environments)
        tree = base_tree(store, bundle)
        try:
            for number in range(1, asked.trials + 1):
                began = time.monotonic()
                answer, figures = "", ""
                try:
                    timing = measure(bench, bundle, environment, tree, tree, limit_s=asked.limit)
                    answer = timing.answer.value if timing.answer is not None else ""
                    figures = f"{timing.geomean:.3f} [{timing.low:.3f}, {timing.high:.3f}] of {timing.rounds} blocks, "
                    figures += f"{timing.void} void, noise [{timing.noise_low:.3f}, {timing.noise_high:.3f}]"
                except TooNoisy as error:
                    answer, figures = NOISY, str(error)
                except CannotTime as error:
                    answer, figures = BROKEN, str(error)
                found[answer] += 1
                load = os.getloadavg()[0]
                seconds = time.monotonic() - began
                print(f"{number}: {answer}: {figures}; {seconds:.0f} s, load {load:.1f}", flush=True)
        except KeyboardInterrupt:
            print("interrupted")
    trials, same = found.total(), found[Answer.SAME.value]
    others = ", ".join(f"{count} {answer}" for answer, count in found.items() if answer != Answer.SAME.value)
    print(f"same in {same} of {trials} trials{f' ({others})' if others else ''}")
    return 0 if trials and same >= 0.95 * trials else 1


def _frozen(root: Path, pr: int, foreign: float) -> tuple[Store, Bundle]:
    """The task of one pull request of the sample upstream, in a data repository of its own."""
    run(["git", "init", "-q", "-b", "main", root]).check()
    (root / MARKER).write_text(f"schema_version = 1\n\n[timing]\nforeign = {foreign}\n")
    store = Store(Layout(root))
    upstream = open_upstream(sample.URL, store.layout.mirrors)
    (candidate,) = mine(upstream.repository, repo=upstream.repo, url=upstream.url, numbers=[pr]).candidates
    frozen = freeze(candidate, upstream, store)
    if not isinstance(frozen, Frozen):
        raise SystemExit(f"pull request {pr} cannot be frozen: {frozen}")
    return store, store.load(frozen.id)


if __name__ == "__main__":
    raise SystemExit(main())
