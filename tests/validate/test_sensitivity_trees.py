"""Several faulty trees in one sandbox: what one does no other sees, and survivors are tried with other seeds."""

from __future__ import annotations

import math
import random
import time

import pytest
from tiny_tasks import BASE, new_store, tree_of, write_task

from smith.environment.layers import build
from smith.freeze.bundle import Bundle, Store
from smith.grade.trial import Bench
from smith.records.recipe import EnvironmentChoice
from smith.records.results import Failure, Outcome, TestRun
from smith.records.sensitivity import Fate, PlantedFault
from smith.sandbox import Sandbox, make
from smith.validate.planted import Fault
from smith.validate.reseeded import reseeded
from smith.validate.trees import Trees

pytestmark = pytest.mark.timeout(600)

TESTS = {
    "tests/test_scale.py": """
import os
import random

from tiny.scale import scale

KEPT = "/tmp/kept" if os.path.isdir("/smith") else os.path.join(os.environ["TMPDIR"], "kept")

def test_scale():
    assert scale(3) == 6

def test_left_behind():
    assert not os.path.exists(KEPT) and not os.path.exists(os.path.expanduser("~/kept"))
    open(KEPT, "w").close()
    open(os.path.expanduser("~/kept"), "w").close()

def test_random():
    random.seed(7)
    value = random.randrange(1000)
    assert scale(value) == 2 * value
""",
    "tests/test_other.py": "def test_behind(): open('/tmp/behind', 'w').close()\n",
}
IDS = [f"tests/test_scale.py::test_{name}" for name in ("scale", "left_behind", "random")]
RIGHT = "def scale(x):\n    return 2 * x\n"
OTHERS = "tests/test_other.py::test_behind"


@pytest.fixture(scope="module")
def bubblewrap(sandbox_name: str) -> Sandbox:
    return make(sandbox_name)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Bundle]:
    store = new_store(tmp_path_factory.mktemp("trees") / "data")
    return store, write_task(store, TESTS)


def tree(store: Store, text: str) -> str:
    return tree_of(store, {**BASE, "tiny/scale.py": text})


def trees_of(world: tuple[Store, Bundle], sandbox: Sandbox, deadline: float = math.inf) -> Trees:
    store, bundle = world
    environment = build(EnvironmentChoice(name="default"), store.layout.environments)
    return Trees(bundle, Bench(store, sandbox, "cpu"), environment, [*IDS, OTHERS], tree(store, RIGHT), deadline)


def outcomes(run: TestRun | None) -> list[Outcome]:
    assert run is not None
    return [result.outcome for result in run.results]


PASS, FAIL, MISS = Outcome.PASSED, Outcome.FAILED, Outcome.MISSING


def test_each_tree_is_its_own_and_a_failure_ends_only_its_own(world: tuple[Store, Bundle], bubblewrap: Sandbox) -> None:
    store, _ = world
    crash = "import os, signal\ndef scale(x):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    writing = (
        "import glob\nfor name in glob.glob('/smith/trees/*/tiny/scale.py'):\n"
        "    try:\n        open(name, 'w').close()\n    except OSError:\n        pass\n" + RIGHT
    )
    texts = [writing, "def scale(x):\n    return x\n", crash, RIGHT]
    trees = trees_of(world, bubblewrap)
    # What is asked for is one sandbox for all, and nothing that falls back on one for each.
    ended = trees.in_one([tree(store, text) for text in texts])
    runs = [one.run if one else None for one in ended]
    assert outcomes(runs[0]) == [PASS] * 4  # what it tried to write is read-only, or the last would not pass
    assert outcomes(runs[1]) == [FAIL, MISS, MISS, MISS]
    assert outcomes(runs[2]) == [Outcome.CRASHED, MISS, MISS, MISS]
    assert outcomes(runs[3]) == [PASS] * 4
    assert trees.together > 1
    assert runs[2] is not None and runs[2].results[0].failure is Failure.KERNEL_ERROR


def test_a_solution_that_minds_its_place_gives_each_tree_a_sandbox_of_its_own(
    world: tuple[Store, Bundle], bubblewrap: Sandbox
) -> None:
    store, _ = world
    minding = "import os\ndef scale(x):\n    assert '/trees/' not in __file__\n    return 2 * x\n"
    trees = trees_of(world, bubblewrap)
    trees.solution = tree(store, minding)
    ended = trees.ended([tree(store, minding), tree(store, minding.replace("2", "3"))])
    assert trees.together == 1
    assert [outcomes(one.run if one else None)[0] for one in ended] == [PASS, FAIL]


def test_after_the_deadline_none_is_begun(world: tuple[Store, Bundle]) -> None:
    store, _ = world
    trees = trees_of(world, make("host"), time.monotonic() - 1)
    assert trees.ended([tree(store, RIGHT)] * 3) == [None] * 3


def test_survivors_are_tried_with_other_seeds(world: tuple[Store, Bundle], bubblewrap: Sandbox) -> None:
    """With seed 7 the test draws one number of a thousand; a fault that shows on another one needs another draw."""
    draws = [random.Random(7 + shift).randrange(1000) for shift in (0, 1, 2)]
    assert len({*draws, 3}) == 4
    store, _ = world
    texts = {
        "shy": f"def scale(x):\n    return 2 * x if x != {draws[2]} else -1\n",
        "same": "def scale(x):\n    return x + x\n",
    }
    faults = [Fault(name, "mutant", "o", "tiny/scale.py", 1, tree=tree(store, text)) for name, text in texts.items()]
    results = [
        PlantedFault(name=f.name, kind="mutant", operator="o", file=f.path, line=1, fate=Fate.SURVIVED) for f in faults
    ]
    trees = trees_of(world, bubblewrap)
    found, seeds = reseeded(results, faults, trees)
    assert [(f.fate, f.seed) for f in found] == [(Fate.SURVIVED, 2), (Fate.SURVIVED, None)]
    assert found[0].seed_test == IDS[2]
    assert seeds == (1, 2)
