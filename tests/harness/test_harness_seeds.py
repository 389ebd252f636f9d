"""Seeds reach what a test does not seed itself, and nothing else; a segfault and a lack of memory are told apart."""

from __future__ import annotations

import json

import pytest
from harness_bench import Bench

from smith.harness.run import Group, run_groups
from smith.records.results import Failure, Outcome, TestResult

DRAWS = """
import json, random
import numpy
SEEDED = random.Random(1).random()
def test_it():
    import torch
    drawn = [hash("kernel"), random.random(), float(numpy.random.rand()), float(torch.rand(1)), SEEDED]
    raise RuntimeError(json.dumps(drawn))
"""
OWN = """
import random, numpy, torch
random.seed(7); numpy.random.seed(7); torch.manual_seed(7)
DRAWN = [random.random(), float(numpy.random.rand()), float(torch.rand(1))]
def test_it():
    import json
    raise RuntimeError(json.dumps(DRAWN + [random.random()]))
"""


def drawn(bench: Bench, seed: int) -> list[float]:
    group = Group(("test_one.py::test_it",), 100, 200)
    sandbox, place, environment = bench.sandbox, bench.place, bench.environment
    (done,) = run_groups(sandbox, place, environment, bench.recipe, bench.device, [group], seed=seed)
    found: list[float] = json.loads(done.results[0].message.partition(": ")[2])
    return found


@pytest.mark.parametrize("device", ["cpu", "interpreter:gfx942"])
def test_the_seed_of_a_repeat_decides_what_is_drawn(bench: Bench, device: str) -> None:
    # On the interpreter torch is loaded before the fork, on the CPU by the test itself.
    bench.device = device
    bench.write("test_one.py", DRAWS)
    first, again, other = (drawn(bench, seed) for seed in (1, 1, 2))
    assert first == again
    assert all(a != b for a, b in zip(first[:4], other[:4], strict=True)) and first[4] == other[4]


def test_a_file_that_seeds_itself_keeps_its_seeds(bench: Bench) -> None:
    bench.write("test_one.py", OWN)
    assert drawn(bench, 1) == drawn(bench, 2)


def one(bench: Bench, body: str) -> TestResult:
    result, _ = bench.one(f"def test_it():\n    {body}\n")
    return result


def test_a_trap_of_native_code_is_an_error_of_the_kernel(bench: Bench) -> None:
    result = one(bench, "import ctypes; ctypes.string_at(0)")
    assert (result.outcome, result.failure) == (Outcome.CRASHED, Failure.KERNEL_ERROR)


def test_leaving_the_process_is_no_error_of_the_kernel(bench: Bench) -> None:
    result = one(bench, "import os; os._exit(0)")
    assert (result.outcome, result.failure) == (Outcome.CRASHED, Failure.OTHER)


def test_a_lack_of_memory_is_told(bench: Bench) -> None:
    result = one(bench, "import numpy; numpy.ones(1 << 40)")
    assert (result.outcome, result.failure) == (Outcome.FAILED, Failure.OUT_OF_MEMORY)
