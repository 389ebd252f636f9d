"""What a validation costs over pytest by hand: ``make bench-validation [SECONDS=60] [REPEATS=1]``.

A task is made whose tests import torch and then wait, SECONDS in all on each side; waiting and not computing, so that
what else runs on the machine enters only where smith itself works. It is validated in bubblewrap (collecting, then
baseline and reference, REPEATS times each), and the same tests are run by ``python -m pytest`` on both trees as often.
Printed is the ratio of the two wall times, start-up included, from one run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from run import seconds

from smith.environment.layers import build
from smith.git.trees import materialise
from smith.grade.trial import Bench, base_tree, reference_tree
from smith.sandbox import make
from smith.validate.validate import Validation

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "validate"))
from tiny_tasks import new_store, write_task

TESTS = 20
TEXT = """
import time
import pytest
import torch
from tiny.scale import scale

@pytest.mark.parametrize("n", range(1, {tests} + 1))
def test_scale(n):
    time.sleep({each})
    torch.testing.assert_close(scale(torch.full((4,), float(n))), torch.full((4,), 2.0 * n))
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--repeats", type=int, default=1)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        store = new_store(Path(place) / "data")
        text = TEXT.format(tests=TESTS, each=asked.seconds / TESTS)
        # The budget of a file is no matter here: all tests must run.
        bundle = write_task(store, {"tests/test_scale.py": text}, budget_s=10 * asked.seconds)
        bench = Bench(store, make("bubblewrap"), "cpu")
        validation = Validation(
            bundle, bench, repeats=asked.repeats, builder=lambda choice: build(choice, store.layout.environments)
        )
        python = build(bundle.recipe.environments[0], store.layout.environments).python
        trees = {}
        for name, tree in (("reference", reference_tree(store, bundle)), ("nop", base_tree(store, bundle))):
            trees[name] = Path(place) / name
            materialise(store.scratch, tree, trees[name])

        def by_hand() -> None:
            for _ in range(asked.repeats):
                for folder in trees.values():
                    argv = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
                    subprocess.run(argv, cwd=folder, stdout=subprocess.DEVNULL, check=False)

        receipts = []
        ours = seconds(lambda: receipts.append(validation.receipt()))
        theirs = seconds(by_hand)
    print(f"{receipts[0].verdict.value}: {len(receipts[0].fail_to_pass)} fail-to-pass, {len(receipts[0].arms)} runs")
    print(f"validation {ours:.1f} s, pytest by hand {theirs:.1f} s: {ours / theirs:.3f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
