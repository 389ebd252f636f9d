"""Real kernels, launched in the interpreter and compiled for GPUs that are not here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from harness_bench import Bench

from smith.harness.compiling import CompiledSide, compile_launches
from smith.harness.place import Place
from smith.harness.run import Capture, Group, run_groups
from smith.harness.stage import COMPILE, Stage
from smith.records.compiled import CompileFailure, Launch
from smith.records.results import Outcome, TestRun
from smith.sandbox import Sandbox

pytestmark = pytest.mark.timeout(600)
TARGETS = ("gfx942", "gfx950", "sm_90")

KERNELS = """
    import os
    import torch, triton, triton.language as tl

    @triton.jit
    def double(x, TIMES: tl.constexpr):
        return x * TIMES

    @triton.jit
    def negate(x):
        return -x

    @triton.autotune(configs=[triton.Config({"B": 64}, num_warps=2), triton.Config({"B": 256})], key=["n", "gone"])
    @triton.heuristics({"EVEN": lambda a: a["n"] % a["B"] == 0})
    @triton.jit
    def scale(x, bias, y, n, factor, flag: tl.constexpr, FN: tl.constexpr, B: tl.constexpr, EVEN: tl.constexpr):
        at = tl.program_id(0) * B + tl.arange(0, B)
        mask = at < n
        value = FN(double(tl.load(x + at, mask=mask), 2)) * factor
        if bias is not None:
            value += tl.load(bias + at, mask=mask)
        tl.store(y + at, value, mask=mask)

    @triton.jit
    def product(a, b, c, N: tl.constexpr, num_warps: tl.constexpr):
        i = tl.arange(0, N)
        at = i[:, None] * N + i[None, :]
        tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))

    @triton.jit
    def copy_pair(pair, sizes, N: tl.constexpr, DTYPE: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(pair[1] + i, tl.load(pair[0] + i, mask=i < sizes[0]).to(DTYPE), mask=i < sizes[1])

    INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")

    @triton.jit
    def wrong_here(x):
        if INTERPRETED:
            tl.store(x, 1)
        else:
            tl.store(x, tl.arange(0, 3))

    @triton.constexpr_function
    def die():
        import os as system  # Triton refuses a kernel that refers to a module of the globals
        if system.environ.get("TRITON_INTERPRET") != "1":
            system.abort()
        return 1

    @triton.constexpr_function
    def dawdle():
        import os as system, time as clock
        if system.environ.get("TRITON_INTERPRET") != "1":
            clock.sleep(1000)
        return 1

    @triton.jit
    def crashing(x):
        tl.store(x, die())

    @triton.jit
    def dawdling(x):
        tl.store(x, dawdle())

    def made():
        @triton.jit
        def local(x):
            tl.store(x, 1)
        return local
"""

TESTS = """
    import pytest, torch
    import triton, triton.language as tl
    import kern

    @triton.jit
    def of_the_test(x):
        tl.store(x, 1)

    @pytest.mark.parametrize("n", [1, 64, 100, 101])
    def test_scale(n):
        x = torch.ones(n, device="cuda")
        y = torch.empty_like(x)
        for bias in (None, x, x):
            kern.scale[lambda meta: (triton.cdiv(n, meta["B"]),)](x, bias, y, n, 0.5, flag="fast", FN=kern.negate)
        assert torch.equal(y, torch.zeros_like(x))
        of_the_test[(1,)](y)

    def test_product():
        a = torch.eye(64, device="cuda", dtype=torch.float16)
        c = torch.empty(64, 64, device="cuda")
        kern.product[(1,)](a, a, c, 64, num_warps=8, waves_per_eu=2)

    def test_pair():
        x = torch.ones(32, device="cuda")
        y = torch.empty(32, device="cuda", dtype=torch.bfloat16)
        kern.copy_pair[(1,)]((x, y), (32, 7), 32, tl.bfloat16)

    def test_odd():
        x = torch.ones(1, device="cuda")
        kern.wrong_here[(1,)](x)
        kern.crashing[(1,)](x)
        kern.dawdling[(1,)](x)
        kern.made()[(1,)](x)
        kern.double.fn
"""


@dataclass
class World:
    run: TestRun
    side: CompiledSide
    again: CompiledSide

    def of(self, symbol: str, target: str) -> list[object]:
        pairs = zip(self.run.captured, self.side.answers[target], strict=True)
        return [answer for launch, answer in pairs if launch.symbol == symbol]


def stage(bench: Bench) -> Stage:
    return Stage(bench.sandbox, bench.place, bench.environment, bench.recipe, COMPILE)


@pytest.fixture(scope="module")
def world(bubblewrap: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Tests run once with their launches captured, which are then compiled for all targets, twice."""
    with Place.create(tmp_path_factory.mktemp("gate") / "work") as place:
        bench = Bench(bubblewrap, place)
        bench.write("kern.py", KERNELS)
        bench.write("tests/test_kern.py", TESTS)
        ids = [f"tests/test_kern.py::test_scale[{n}]" for n in (1, 64, 100, 101)]
        ids += [f"tests/test_kern.py::test_{name}" for name in ("product", "pair", "odd")]
        (run,) = run_groups(
            bench.sandbox, bench.place, bench.environment, bench.recipe, "interpreter:gfx942",
            [Group(tuple(ids), 60, 240)], capture=Capture(("tests",)),
        )  # fmt: skip
        side = compile_launches(stage(bench), run.captured, TARGETS, {}, 2, launch_s=20)
        known = {target: [a.key for a in answers if a.facts] for target, answers in side.answers.items()}
        quick = [launch for launch in run.captured if launch.symbol in ("scale", "product")]
        yield World(run, side, compile_launches(stage(bench), quick, TARGETS, known, 2))


def test_distinct_launches_are_told_once_and_resolved(world: World) -> None:
    assert [r.outcome for r in world.run.results] == [Outcome.PASSED] * 7, [r.message for r in world.run.results]
    assert world.run.uncaptured == 0
    scales = [launch for launch in world.run.captured if launch.symbol == "scale"]
    # n: one, divisible by 16 (and even), neither; 100 and 101 are alike; each with and without a bias.
    assert len(scales) == 6
    arguments = {a.name: a for a in scales[0].arguments}
    assert [arguments[name].text for name in ("B", "EVEN", "flag")] == ["64", "False", "fast"]
    assert {o.name: o.text for o in scales[0].options}["num_warps"] == "2"
    assert arguments["FN"].kind == "function" and arguments["FN"].text.startswith("kern:negate:")
    assert (arguments["bias"].kind, arguments["factor"].kind) == ("none", "float")
    assert scales[2].grid == (1,) and scales[0].kernel == "kern.py::scale"
    # A kernel that a test brings along is not the task's.
    assert not [launch for launch in world.run.captured if launch.symbol == "of_the_test"]


def test_options_are_options_only_where_they_are_no_parameters(world: World) -> None:
    (launch,) = [launch for launch in world.run.captured if launch.symbol == "product"]
    assert [o.name for o in launch.options] == ["waves_per_eu"]
    assert [a.traits for a in launch.arguments if a.name == "num_warps"] == [("option",)]


@pytest.mark.parametrize("target", TARGETS)
def test_they_compile_and_the_machine_code_is_read(world: World, target: str) -> None:
    assert world.side.note == "" and world.side.triton
    for symbol, count in (("scale", 6), ("product", 1), ("copy_pair", 1)):
        answers = world.of(symbol, target)
        assert len(answers) == count
        assert all(a.failure is None for a in answers), answers
    (product,) = world.of("product", target)
    # Triton takes a constant of that name, passed by name, as the option too.
    assert product.facts.waves == 8
    assert product.facts.matrix_instructions > 0 and product.facts.lds_bytes > 0
    assert product.facts.vgpr > 8 and product.facts.code_bytes > 500
    assert 1 <= product.facts.occupancy <= 16
    assert product.dropped == (("waves_per_eu",) if target == "sm_90" else ())
    if target != "sm_90":
        assert product.facts.vgpr_spills == 0 and product.facts.sgpr > 8 and product.facts.scratch_bytes == 0


@pytest.mark.parametrize("target", TARGETS)
def test_each_failure_has_its_typed_reason(world: World, target: str) -> None:
    expected = {
        "wrong_here": CompileFailure.LANGUAGE,
        "crashing": CompileFailure.CRASHED,
        "dawdling": CompileFailure.TIMEOUT,
        "made.<locals>.local": CompileFailure.NOT_FOUND,
    }
    found = {symbol: [a.failure for a in world.of(symbol, target)] for symbol in expected}
    assert found == {symbol: [failure] for symbol, failure in expected.items()}
    assert "power of 2" in world.of("wrong_here", target)[0].detail
    assert "SIGABRT" in world.of("crashing", target)[0].detail
    assert world.of("dawdling", target)[0].detail == "over 20 s"


def test_what_was_compiled_before_is_only_recognised(world: World) -> None:
    assert all(a.cached and a.facts is None and a.key for answers in world.again.answers.values() for a in answers)


def test_keys_tell_targets_and_launches_apart(world: World) -> None:
    keys = [a.key for answers in world.side.answers.values() for a in answers if a.facts]
    assert len(keys) == len(set(keys)) == 24


def launch_of(symbol: str, module: str = "kern", line: int = 3, **more: object) -> Launch:
    return Launch.model_validate(
        {"module": module, "symbol": symbol, "path": f"{module}.py", "line": line, "arguments": (), **more}
    )


WARPS = {"name": "num_warps", "kind": "integer", "text": "8", "constant": True}
POINTER = {"name": "x", "kind": "pointer", "text": "float32", "traits": ("aligned",)}


def test_hand_made_launches_that_cannot_compile(bench: Bench) -> None:
    bench.write(
        "kern.py",
        """\
        import triton, triton.language as tl
        @triton.jit
        def greedy(x, N: tl.constexpr):
            i = tl.arange(0, N)
            tl.store(x + i, tl.gather(tl.load(x + i), i, 0))
        import os
        @triton.constexpr_function
        def hidden():
            return os.environ.get("HOME")
        @triton.jit
        def asking(x):
            tl.store(x, hidden())
        """,
    )
    bench.write("broken.py", "raise RuntimeError('needs a GPU')\n")
    bench.write("leaving.py", "import sys\nsys.exit('no')\n")

    def sized(n: int) -> dict[str, object]:
        return {"name": "N", "kind": "integer", "text": str(n), "constant": True}

    launches = [
        launch_of("greedy", line=2, arguments=(POINTER, sized(16))),
        launch_of("greedy", line=2, arguments=(POINTER, sized(32768)), options=(WARPS,)),
        launch_of("greedy", line=2, arguments=(POINTER, {"name": "N", "kind": "other", "text": "enum:Mode"})),
        launch_of("greedy", line=2, arguments=(POINTER,)),
        launch_of("greedy", line=9, arguments=(POINTER, sized(16))),
        launch_of("asking", line=10, arguments=(POINTER,)),
        launch_of("k", "broken"),
        launch_of("k", "leaving"),
    ]
    side = compile_launches(stage(bench), launches, ["gfx942", "gfx950"], {}, 2)
    assert [a.failure for a in side.answers["gfx942"]] == [
        None,
        CompileFailure.OUT_OF_RESOURCES,
        CompileFailure.UNSUPPORTED_ARGUMENT,
        CompileFailure.BINDING,
        CompileFailure.NOT_FOUND,
        CompileFailure.LANGUAGE,
        CompileFailure.IMPORT_FAILED,
        CompileFailure.IMPORT_FAILED,
    ], side
    assert "65536" in side.answers["gfx942"][1].detail
    # Which has more LDS.
    larger = side.answers["gfx950"][1]
    assert larger.failure is None and larger.facts is not None and larger.facts.lds_bytes == 131072
    assert "needs a GPU" in side.answers["gfx942"][6].detail


def test_a_module_that_ends_its_process_fails_its_target_and_is_seen(bench: Bench) -> None:
    bench.write("ending.py", "import os\nos._exit(3)\n")
    side = compile_launches(stage(bench), [launch_of("k", "ending")], ["gfx942", "sm_90"], {}, 2)
    for target in ("gfx942", "sm_90"):
        (answer,) = side.answers[target]
        assert answer.failure is CompileFailure.IMPORT_FAILED
        assert "status 3" in answer.detail


def test_nothing_is_captured_where_it_is_not_asked_for(bench: Bench) -> None:
    bench.write("kern.py", KERNELS)
    bench.write("tests/test_kern.py", TESTS)
    group = Group(("tests/test_kern.py::test_pair",), 60, 120)
    (run,) = run_groups(bench.sandbox, bench.place, bench.environment, bench.recipe, "interpreter:gfx942", [group])
    assert run.results[0].outcome is Outcome.PASSED
    assert run.captured == ()
