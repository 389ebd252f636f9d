"""What running both arms side by side saves: part of ``make bench-validation [JOBS=2]``.

Tasks of the sample upstream are frozen, and each is validated with one job and with JOBS, in turns, ROUNDS times; in
bubblewrap, three repeats, nothing kept. Printed is the ratio of the wall times within each pair, which the load of the
machine (printed too) touches on both sides, and whether the receipts are the same but for seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from run import seconds

from smith import sample
from smith.environment.layers import build
from smith.freeze.bundle import Bundle, Store
from smith.freeze.freeze import freeze
from smith.git.mirrors import open_upstream
from smith.grade.trial import Bench
from smith.mine import mine
from smith.parallel import Slots
from smith.paths import MARKER, Layout
from smith.process import run
from smith.records.receipt import Receipt
from smith.sandbox import make
from smith.validate.validate import Validation

PRS = (60, 13)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print. Exit status 1 where a receipt hangs on the number of jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pr", type=int, action="append", help=f"of the sample upstream (default {PRS})")
    asked = parser.parse_args(argv)
    same = True
    with tempfile.TemporaryDirectory() as place:
        store = _store(Path(place) / "data")
        for bundle in _frozen(store, asked.pr or list(PRS)):
            same = _compared(store, bundle, asked.jobs, asked.rounds) and same
    return 0 if same else 1


def _compared(store: Store, bundle: Bundle, jobs: int, rounds: int) -> bool:
    device = "cpu" if "cpu" in bundle.spec.devices else "interpreter:gfx942"
    ratios, facts = [], set()
    for _ in range(rounds):
        times = []
        for count in (1, jobs):
            found: list[Receipt] = []
            times.append(seconds(partial(_validate, store, bundle, device, count, found)))
            facts.add(_without_seconds(found[0]))
        ratios.append(times[0] / times[1])
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg()[:2])
        print(
            f"{bundle.id} on {device}: {times[0]:.1f} s with 1 job, {times[1]:.1f} s with {jobs} (load {load})",
            flush=True,
        )
    verdict = "the receipts are the same" if len(facts) == 1 else "THE RECEIPTS DIFFER"
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"{bundle.id}: {statistics.median(ratios):.2f}x as fast ({spread}), {verdict}", flush=True)
    return len(facts) == 1


def _validate(store: Store, bundle: Bundle, device: str, count: int, into: list[Receipt]) -> None:
    slots = Slots(count)
    with slots.held():
        validation = Validation(
            bundle,
            Bench(store, make("bubblewrap"), device),
            repeats=3,
            builder=lambda choice: build(choice, store.layout.environments),
            slots=slots,
        )
        into.append(validation.receipt())


def _without_seconds(receipt: Receipt) -> bytes:
    arms = tuple(arm.model_copy(update={"seconds": 0.0}) for arm in receipt.arms)
    facts = receipt.facts
    if facts is not None:
        tests = {i: test.model_copy(update={"seconds": 0.0}) for i, test in facts.tests.items()}
        facts = facts.model_copy(update={"tests": tests})
    return receipt.model_copy(update={"seconds": 0.0, "arms": arms, "facts": facts}).dumps()


def _store(root: Path) -> Store:
    run(["git", "init", "-q", root]).check()
    (root / MARKER).write_text("schema_version = 1\n")
    return Store(Layout(root))


def _frozen(store: Store, numbers: Sequence[int]) -> list[Bundle]:
    upstream = open_upstream(sample.URL, store.layout.mirrors)
    found = mine(upstream.repository, repo=upstream.repo, url=upstream.url, numbers=list(numbers)).candidates
    for candidate in found:
        freeze(candidate, upstream, store)
    return [store.load(task) for task in store.ids()]


if __name__ == "__main__":
    sys.exit(main())
