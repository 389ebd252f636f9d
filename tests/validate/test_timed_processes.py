"""Timed processes in real sandboxes: they take turns, and what cannot be timed honestly is told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny_tasks import new_store, tree_of, write_task

from smith.environment.layers import build
from smith.freeze.bundle import Store
from smith.grade.timed_processes import CannotTime, Side, Tampered, time_together
from smith.grade.trial import Bench, Trial, trial
from smith.records.recipe import EnvironmentChoice
from smith.sandbox import make

TESTS = {"tests/test_scale.py": "from tiny.scale import scale\n\n\ndef test_scale():\n    assert scale(2) == 4\n"}
CASES = """
import random
from fractions import Fraction

from tiny.scale import scale


def case():
    x = float(Fraction(random.random()))
    return lambda: scale(x)


def cases():
    return [("one", case), ("other", case)]
"""
PLAIN = "import time\n\n\ndef scale(x):\n    time.sleep({})\n    return 2 * x\n"
HONEST = PLAIN.format(0.01)

SLOWED_CLOCK = """
import sys

def scale(x, real=scale):
    timer = sys._getframe(2).f_locals.get("self")
    if hasattr(timer, "_clock") and not hasattr(timer, "slow"):
        timer.slow, clock = True, timer._clock
        timer._clock = lambda: clock() // 8
    return real(x)
"""
OWN_REPORT = """
import json
import sys

plan = json.loads(sys.argv[1])
import os
os.write(plan["fd"], b'["one", "other"]\\n' + b"\\n" * 4000)
document = {"cases": {"one": {"ns": 1.0, "inner": 1, "left": 0, "checks": 5}}, "processor_s": 1.0}
os.write(plan["fd"], json.dumps(document).encode() + b"\\n")
os._exit(0)
"""

Timed = Callable[[str, str], list[dict[str, dict[str, float]]]]


@pytest.fixture
def timed(tmp_path: Path, sandbox_name: str) -> Iterator[Timed]:
    """Times a text of ``tiny/scale.py`` beside another, the second as the candidate."""
    store = new_store(tmp_path)
    bundle = write_task(store, TESTS)
    file = tmp_path / "cases.py"
    file.write_text(CASES)
    environment = build(EnvironmentChoice(name="default"), store.layout.environments)
    bench = Bench(store, make(sandbox_name), "cpu")

    def run(base: str, candidate: str) -> list[dict[str, dict[str, float]]]:
        trees = [tree_with(store, text) for text in (base, candidate)]
        with (
            trial(bench, bundle, environment, trees[0]) as first,
            trial(bench, bundle, environment, trees[1]) as second,
        ):
            return [told.cases for told in time_together(sides(first, second), file, 7, 0.15)]

    yield run


def tree_with(store: Store, text: str) -> str:
    return tree_of(store, {"tiny/__init__.py": "", "tiny/scale.py": text})


def sides(first: Trial, second: Trial) -> list[Side]:
    return [Side(first, False), Side(second, True)]


def test_two_take_turns(timed: Timed) -> None:
    slow, fast = timed(PLAIN.format(0.05), HONEST)
    assert list(slow) == ["one", "other"]
    for case in slow:
        assert 9 <= slow[case]["samples"] == fast[case]["samples"]
        assert 2 < slow[case]["ns"] / fast[case]["ns"] < 8
        assert slow[case]["checks"] == fast[case]["checks"]


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (
            HONEST + "\n\ndef burn():\n    while True:\n        pass\n\n\n"
            "import threading\n\nthreading.Thread(target=burn, daemon=True).start()\n",
            "works while others are timed",
        ),
        (
            "import subprocess\nimport sys\n\n" + HONEST + "\n\n"
            "burn = 'import time; end = time.time() + 30\\nwhile time.time() < end: pass'\n"
            "subprocess.Popen(['setsid', sys.executable, '-c', burn])\n",
            "works while others are timed",
        ),
        ("import os\nimport sys\n\n" + HONEST + "\n\nos.write(3, b'x')\nos._exit(0)\n", "does not run"),
        (HONEST + "\n\nraise RuntimeError('no such kernel')\n", "no such kernel"),
        (HONEST + SLOWED_CLOCK, "its clock says"),
        (OWN_REPORT, "does not run"),
    ],
    ids=["a thread burns", "a process burns", "it is gone", "it raises", "a slow clock", "own report"],
)
def test_what_the_candidate_does_wrong_is_said_of_it(timed: Timed, candidate: str, words: str) -> None:
    with pytest.raises(CannotTime, match=words) as caught:
        timed(HONEST, candidate)
    assert caught.value.candidate
    assert isinstance(caught.value, Tampered) == (words not in ("does not run", "no such kernel"))


def test_the_baseline_is_not_blamed_on_the_candidate(timed: Timed) -> None:
    with pytest.raises(CannotTime, match="no such kernel") as caught:
        timed(HONEST + "\n\nraise RuntimeError('no such kernel')\n", HONEST)
    assert not caught.value.candidate
