"""What the inside tells of code that reaches for the framework, and what our own failing tests show."""

from __future__ import annotations

import pytest
from harness_bench import Bench

from smith.grade.canaries import draw, mixed, sang, write
from smith.grade.spoiled import Spoiler
from smith.harness.run import Group, run_groups
from smith.records.results import Outcome, TestRun

HONEST = """\
import builtins, time, sys
import pytest
def test_it(monkeypatch):
    monkeypatch.setattr(builtins, "print", lambda *a: None)
    monkeypatch.setattr(time, "time", lambda: 0)
    monkeypatch.setenv("LD_PRELOAD", "")
    with pytest.raises(ValueError):
        raise ValueError
"""


def test_honest_tests_alter_nothing(bench: Bench) -> None:
    result, done = bench.one(HONEST)
    assert result.outcome is Outcome.PASSED and done.altered == ()


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import _pytest.python as p; p.Function.runtest = lambda self: None", "_pytest.python.Function.runtest"),
        ("import _pytest.runner as r; f = r.CallInfo.from_call.__func__; g = lambda *a: 0\n"
         "f.__code__ = (lambda cls, func, when, reraise=None: cls(None, None, 0, 0, 0, when, _ispytest=True)).__code__",
         "_pytest.runner.CallInfo.from_call"),
        ("import smith.inside.outcomes as o; o.Phases.outcome = lambda self: ('passed', None)",
         "smith.inside.outcomes.Phases.outcome"),
        ("import time; time.perf_counter = lambda: 0.0", "time.perf_counter"),
        ("import builtins; builtins.isinstance = isinstance; builtins.repr = str", "builtins.repr"),
        ("import os; os.environ['LD_PRELOAD'] = '/x.so'", "environ[LD_PRELOAD]"),
        ("import sys; sys.settrace(lambda *a: None)", "sys.gettrace"),
        ("import sys, types; sys.modules['json'] = types.ModuleType('json')", "sys.modules[json]"),
        ("import sys\nclass F:\n    def find_spec(self, *a): return None\nsys.meta_path.insert(0, F())",
         "sys.meta_path[F]"),
    ],
)  # fmt: skip
def test_what_code_under_test_replaces_is_told_by_name(bench: Bench, code: str, name: str) -> None:
    bench.write("ops.py", code)
    _, done = bench.one("import ops\ndef test_it(): pass\n")
    assert name in done.altered


def test_a_plug_in_that_is_registered_while_tests_run_is_told(bench: Bench) -> None:
    bench.write(
        "ops.py",
        """\
        import gc, pluggy
        class Plugin:
            def pytest_pyfunc_call(self, pyfuncitem): return True
        for manager in [o for o in gc.get_objects() if isinstance(o, pluggy.PluginManager)]:
            manager.register(Plugin())
        """,
    )
    result, done = bench.one("import ops\ndef test_it(): assert 0\n")
    assert result.outcome is Outcome.PASSED  # it is believed no longer
    assert "plugin[ops.py]" in done.altered


def with_canaries(bench: Bench) -> tuple[TestRun, tuple[str, ...]]:
    canaries = draw("tests", bench.place.source)
    write(bench.place.source, canaries)
    return bench.run(*mixed(["tests/test_a.py::test_it"], canaries.ids)), canaries.ids


@pytest.mark.parametrize(
    ("code", "caught"),
    [
        ("", 0),
        ("import _pytest.python as p; p.Function.runtest = lambda self: None", 4),
        ("import torch; torch.allclose = lambda *a, **k: True", 1),
        ("import torch; torch.testing.assert_close = lambda *a, **k: None", 1),
        ("import torch; torch.Tensor.__eq__ = lambda a, b: torch.ones(a.shape, dtype=torch.bool)", 1),
    ],
    ids=["honest", "runner", "allclose", "assert_close", "equality"],
)
def test_canaries_fail_until_somebody_owns_the_results(bench: Bench, code: str, caught: int) -> None:
    pytest.importorskip("torch")
    bench.write("tests/ops.py", code)
    bench.write("tests/test_a.py", "import ops\ndef test_it(): pass\n")
    done, ids = with_canaries(bench)
    ours = [r for r in done.results if r.id in ids]
    assert len(ours) == 4 and len(sang(ours)) == caught
    assert all(r.outcome in (Outcome.FAILED, Outcome.PASSED) for r in ours)


TESTED = """\
import pytest
from ops import keeps, spoils

@pytest.mark.parametrize("n", [1, 2])
def test_keeps(n):
    import torch
    assert keeps(torch.ones(n)).sum() == n

class TestMore:
    def test_spoils(self):
        import torch
        spoils(torch.ones(3))
        if True:
            return

def test_swallows():
    try:
        pass
    finally:
        pytest.skip("not here")
"""


def test_a_spoiled_test_fails_whatever_it_does_and_tells_which_inputs_were_changed(bench: Bench) -> None:
    pytest.importorskip("torch")
    bench.write("ops.py", "def keeps(x): return x.clone()\ndef spoils(x): x.zero_()\n")
    spoiler = Spoiler()
    text = spoiler.spoil(TESTED, "/smith/source", ["/smith/source/tests"])
    assert text is not None
    bench.write("test_twin.py", "")
    (bench.place.source / "test_twin.py").write_text(text)
    names = ("test_keeps[1]", "test_keeps[2]", "TestMore::test_spoils", "test_swallows")
    done = bench.run(*(f"test_twin.py::{name}" for name in names))
    assert [r.outcome for r in done.results] == [Outcome.FAILED] * 4
    assert all(spoiler.reached(r.message) for r in done.results)
    changed = [sorted(spoiler.changed(r.message)) for r in done.results]
    assert changed[2] == ["spoils.0"] and changed[0] == changed[1] == []


KERNEL = """\
import torch
import triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

def honest(x):
    y = torch.empty_like(x)
    double[(1,)](x, y, x.numel(), BLOCK=64)
    return y

def shown(x):
    honest(x)
    return x + x
"""


def test_with_broken_kernels_only_what_does_not_need_them_passes(bench: Bench) -> None:
    pytest.importorskip("triton")
    bench.device = "interpreter:gfx942"
    bench.write("ops.py", KERNEL)
    bench.write(
        "test_a.py",
        """\
        import pytest, torch
        import ops
        @pytest.mark.parametrize("name", ["honest", "shown"])
        @pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
        def test_it(name, dtype):
            x = torch.arange(1, 40, device="cuda").to(dtype)
            torch.testing.assert_close(getattr(ops, name)(x), 2 * x)
        """,
    )
    ids = tuple(f"test_a.py::test_it[dtype{n}-{name}]" for name in ("honest", "shown") for n in (0, 1))
    whole, broken = run_groups(
        bench.sandbox,
        bench.place,
        bench.environment,
        bench.recipe,
        bench.device,
        [Group(ids, 60, 120), Group(ids, 60, 120, broken=True)],
    )
    assert [r.outcome for r in whole.results] == [Outcome.PASSED] * 4
    assert [r.outcome for r in broken.results] == [Outcome.FAILED] * 2 + [Outcome.PASSED] * 2
    assert all(r.launches for r in broken.results)
