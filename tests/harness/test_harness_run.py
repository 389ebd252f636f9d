"""Outcomes of every kind, told from exceptions and not from text."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_bench import Bench, OwnEnvironment

from smith.errors import Unavailable
from smith.records.recipe import Recipe
from smith.records.results import Failure, Outcome

MANY = """
import os, sys, time
import pytest

def test_pass(): pass
def test_assert(): assert 1 == 2, "one is not two"
def test_raises(): 
    with pytest.raises(ValueError): pass
def test_type(): int(1, 2, 3, new_option=True)
def test_attribute(): None.kernel
def test_name(): new_kernel()
def test_unbound():
    print(later)
    later = 1
def test_import(): import no_such_module
def test_other(): raise RuntimeError("x" * 5000)
def test_skip(): pytest.skip("not here")
@pytest.mark.skipif(True, reason="nor here")
def test_skipif(): pass
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.mark.xfail
def test_xpass(): pass
@pytest.mark.xfail(strict=True)
def test_xpass_strict(): pass
@pytest.mark.xfail(run=False)
def test_xfail_norun(): pass
def test_sys_exit(): sys.exit(0)
def test_pytest_exit(): pytest.exit("all is well", returncode=0)
def test_interrupt(): raise KeyboardInterrupt
@pytest.fixture
def broken(): raise ValueError("set-up")
def test_setup(broken): pass
@pytest.fixture
def untidy():
    yield
    raise ValueError("tear-down")
def test_teardown(untidy): pass
def test_not_interpretable(): 
    try:
        raise RuntimeError("smith: not interpretable: gluon")
    except RuntimeError as e:
        raise ValueError("wrapped") from e
class Unprintable(Exception):
    def __str__(self): raise SystemExit
def test_unprintable(): raise Unprintable
def test_slow(): time.sleep(60)
def test_stubborn():
    while True:
        try:
            while True: pass
        except BaseException:
            return  # as if nothing had been
class TestClass:
    def test_method(self): pass
import unittest
class Old(unittest.TestCase):
    def test_old_skip(self): raise unittest.SkipTest("old")
    def test_old_fail(self): self.assertEqual(1, 2)
def test_after(): pass
"""

EXPECTED: dict[str, tuple[Outcome, Failure | None]] = {
    "test_pass": (Outcome.PASSED, None),
    "test_assert": (Outcome.FAILED, Failure.ASSERTION),
    "test_raises": (Outcome.FAILED, Failure.ASSERTION),
    "test_type": (Outcome.FAILED, Failure.INTERFACE),
    "test_attribute": (Outcome.FAILED, Failure.INTERFACE),
    "test_name": (Outcome.FAILED, Failure.INTERFACE),
    "test_unbound": (Outcome.FAILED, Failure.INTERFACE),
    "test_import": (Outcome.FAILED, Failure.IMPORT),
    "test_other": (Outcome.FAILED, Failure.OTHER),
    "test_skip": (Outcome.SKIPPED, None),
    "test_skipif": (Outcome.SKIPPED, None),
    "test_xfail": (Outcome.XFAILED, None),
    "test_xpass": (Outcome.XPASSED, None),
    "test_xpass_strict": (Outcome.XPASSED, None),
    "test_xfail_norun": (Outcome.XFAILED, None),
    "test_sys_exit": (Outcome.FAILED, Failure.OTHER),
    "test_pytest_exit": (Outcome.FAILED, Failure.OTHER),
    "test_interrupt": (Outcome.FAILED, Failure.OTHER),
    "test_setup": (Outcome.ERROR, Failure.OTHER),
    "test_teardown": (Outcome.ERROR, Failure.OTHER),
    "test_not_interpretable": (Outcome.NOT_INTERPRETABLE, Failure.OTHER),
    "test_unprintable": (Outcome.FAILED, Failure.OTHER),
    "test_slow": (Outcome.TIMEOUT, Failure.TIMEOUT),
    "test_stubborn": (Outcome.TIMEOUT, Failure.TIMEOUT),
    "TestClass::test_method": (Outcome.PASSED, None),
    "Old::test_old_skip": (Outcome.SKIPPED, None),
    "Old::test_old_fail": (Outcome.FAILED, Failure.ASSERTION),
    "test_after": (Outcome.PASSED, None),
}


def test_every_outcome_is_told_apart_and_the_run_goes_on_after_each(bench: Bench) -> None:
    bench.write("test_many.py", MANY)
    names = [f"test_many.py::{name}" for name in EXPECTED]
    done = bench.run(*names, id_timeout_s=2)
    found = {r.id.partition("::")[2]: (r.outcome, r.failure) for r in done.results}
    assert found == EXPECTED
    assert done.complete and done.ending == "ok" and done.note == ""
    by_id = done.by_id()
    assert by_id["test_many.py::test_assert"].message.startswith("AssertionError: one is not two")
    assert len(by_id["test_many.py::test_other"].message) <= 2000
    assert 1.9 < by_id["test_many.py::test_slow"].seconds < 10


def test_wanted_ids_run_in_the_wanted_order_and_only_they(bench: Bench) -> None:
    bench.write("test_a.py", "def test_1(): pass\ndef test_2(): pass\ndef test_3(): pass\n")
    bench.write("test_b.py", "def test_1(): pass\n")
    done = bench.run("test_b.py::test_1", "test_a.py::test_3", "test_a.py::test_1", "test_a.py::test_3")
    assert done.collected == ("test_b.py::test_1", "test_a.py::test_3", "test_a.py::test_1")
    assert [r.id for r in done.results] == list(done.collected)


def test_ids_without_a_result_say_why(bench: Bench) -> None:
    bench.write("test_good.py", "def test_1(): pass\n")
    bench.write("test_exit.py", "import sys; sys.exit(0)\n")
    bench.write("test_import.py", "import no_such_module\n")
    bench.write("test_refused.py", "raise ImportError('smith: not interpretable: CuTe')\n")
    bench.write("test_skipped.py", "import pytest; pytest.importorskip('no_such_module')\n")
    names = ("exit", "import", "refused", "skipped", "absent")
    done = bench.run("test_good.py::test_1", "test_good.py::test_gone", *(f"test_{n}.py::test_1" for n in names))
    assert [(r.outcome, r.failure) for r in done.results] == [
        (Outcome.PASSED, None),
        (Outcome.MISSING, None),
        (Outcome.ERROR, Failure.COLLECTION),
        (Outcome.ERROR, Failure.COLLECTION),
        (Outcome.NOT_INTERPRETABLE, Failure.COLLECTION),
        (Outcome.SKIPPED, None),
        (Outcome.ERROR, Failure.COLLECTION),
    ]
    assert done.complete


def test_a_conftest_that_does_not_import_fails_every_id_with_its_reason(bench: Bench) -> None:
    bench.write("conftest.py", "import no_such_module\n")
    bench.write("test_a.py", "def test_1(): pass\n")
    done = bench.run("test_a.py::test_1")
    assert (done.results[0].outcome, done.results[0].failure) == (Outcome.ERROR, Failure.COLLECTION)
    assert "no_such_module" in done.results[0].message


def test_a_pytest_that_breaks_is_no_complete_run(bench: Bench) -> None:
    bench.write("conftest.py", "def pytest_collection_finish(): raise RuntimeError('broken hook')\n")
    bench.write("test_a.py", "def test_1(): pass\ndef test_2(): pass\n")
    done = bench.run("test_a.py::test_1", "test_a.py::test_2")
    assert {r.outcome for r in done.results} == {Outcome.MISSING}
    assert not done.complete and done.note.startswith("pytest gave up (status 3)"), done


def test_wrong_arguments_of_a_recipe_are_named(bench: Bench) -> None:
    bench.recipe = Recipe(repo="o/r", pytest_args=("--no-such-option",))
    bench.write("test_a.py", "def test_1(): pass\n")
    done = bench.run("test_a.py::test_1")
    assert done.results[0].outcome is Outcome.MISSING
    assert done.note.startswith("pytest gave up (status 4)"), done


def test_no_further_id_starts_after_the_stop(bench: Bench) -> None:
    bench.write("test_a.py", "import time\n" + "".join(f"def test_{i}(): time.sleep(0.4)\n" for i in range(20)))
    done = bench.run(*(f"test_a.py::test_{i}" for i in range(20)), stop_after_s=0.5)
    passed = [r for r in done.results if r.outcome is Outcome.PASSED]
    assert 1 <= len(passed) < 20 and done.complete
    assert {r.outcome for r in done.results[len(passed) :]} == {Outcome.MISSING}
    assert done.note == f"stopped early: {20 - len(passed)} ids were not run"


def test_the_wall_limit_keeps_what_was_reported(bench: Bench) -> None:
    bench.write("test_a.py", "import time\ndef test_1(): pass\ndef test_2(): time.sleep(60)\ndef test_3(): pass\n")
    done = bench.run("test_a.py::test_1", "test_a.py::test_2", "test_a.py::test_3", id_timeout_s=50, wall_s=6)
    assert [r.outcome for r in done.results] == [Outcome.PASSED, Outcome.TIMEOUT, Outcome.MISSING]
    assert not done.complete and done.ending.startswith("timed out")


def test_options_of_the_repository_and_of_the_user_are_neutralised(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--deselect test_a.py::test_1")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    bench.recipe = Recipe(repo="o/r", env={"PYTEST_ADDOPTS": "-k nothing"})
    bench.write(
        "pytest.ini",
        """\
        [pytest]
        addopts = -k nothing --no-such-option --strict-markers --strict-config -n 4
        log_cli = true
        timeout = 1
        markers = known: it is
        filterwarnings = error
        """,
    )
    bench.write(
        "test_a.py",
        """\
        import time, pytest
        @pytest.mark.timeout(1)
        @pytest.mark.flaky(reruns=3)
        @pytest.mark.known
        def test_1(): time.sleep(1.5)
        """,
    )
    done = bench.run("test_a.py::test_1")
    assert done.results[0].outcome is Outcome.PASSED, done


def test_ini_python_path_and_conftest_are_the_repositorys(bench: Bench) -> None:
    bench.recipe = Recipe(repo="o/r", python_path=("python",))
    bench.write("pytest.ini", "[pytest]\npythonpath = more\n")
    bench.write("python/package/__init__.py", "VALUE = 1\n")
    bench.write("more/extra.py", "VALUE = 2\n")
    bench.write("tests/conftest.py", "import pytest\n@pytest.fixture\ndef three(): return 3\n")
    bench.write(
        "tests/test_a.py",
        """\
        import subprocess, sys, package, extra
        def test_1(three):
            assert (package.VALUE, extra.VALUE, three) == (1, 2, 3)
            subprocess.run([sys.executable, "-c", "import package, smith"], check=True)
        """,
    )
    done = bench.run("tests/test_a.py::test_1")
    assert done.results[0].outcome is Outcome.PASSED, done


def test_the_source_is_read_only_unless_asked_otherwise(bench: Bench) -> None:
    bench.write("test_a.py", "def test_1(): open('left', 'w').write('x')\n")
    assert bench.run("test_a.py::test_1").results[0].outcome is Outcome.FAILED
    assert bench.run("test_a.py::test_1", source_writable=True).results[0].outcome is Outcome.PASSED
    assert (bench.place.source / "left").read_text() == "x"


def test_nothing_written_by_one_run_reaches_the_next(bench: Bench) -> None:
    bench.write(
        "test_a.py",
        """\
        import os, pathlib, tempfile
        def test_1():
            for folder in (tempfile.gettempdir(), os.environ["HOME"], os.path.dirname(os.environ["TRITON_CACHE_DIR"])):
                path = pathlib.Path(folder, "cached")
                assert not path.exists()
                path.write_text("x")
                path.unlink() if folder != os.environ["HOME"] else None
        """,
    )
    for _ in range(2):
        assert bench.run("test_a.py::test_1").results[0].outcome is Outcome.PASSED


def test_the_prelude_runs_before_tests_are_collected(bench: Bench, tmp_path: Path) -> None:
    bench.prelude = tmp_path / "prelude.py"
    bench.prelude.write_text("import sys, types; sys.modules['compiled'] = types.ModuleType('compiled')\n")
    bench.write("test_a.py", "import compiled\ndef test_1(): pass\n")
    assert bench.run("test_a.py::test_1").results[0].outcome is Outcome.PASSED
    bench.prelude.write_text("raise OSError('no ROCm here')\n")
    done = bench.run("test_a.py::test_1")
    assert done.results[0].outcome is Outcome.ERROR and "no ROCm here" in done.results[0].message


def test_a_device_that_cannot_be_set_up_here_is_refused(bench: Bench) -> None:
    bench.device = "rocm:gfx942"
    with pytest.raises(Unavailable, match="rocm:gfx942"):
        bench.run("test_a.py::test_1")


def test_without_isolation_the_results_are_the_same(host_bench: Bench) -> None:
    host_bench.write("test_a.py", "import os\ndef test_1(): pass\ndef test_2(): assert 0\ndef test_3(): os._exit(0)\n")
    done = host_bench.run("test_a.py::test_1", "test_a.py::test_2", "test_a.py::test_3")
    assert [r.outcome for r in done.results] == [Outcome.PASSED, Outcome.FAILED, Outcome.CRASHED], done
    assert not done.complete


def test_a_test_that_forks_is_reported_once(bench: Bench) -> None:
    result, done = bench.one(
        """\
        import os
        def test_it():
            if os.fork() == 0:
                return
            os.wait()
        """
    )
    assert result.outcome is Outcome.PASSED and done.complete and done.note == ""


PLUGIN = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    (yield).force_result(None)  # whatever the test did, as if a rerun had passed
"""


@pytest.mark.parametrize(("module", "passes"), [("pytest_rerunfailures", False), ("pytest_something", True)])
def test_plugins_that_rerun_are_not_loaded_although_installed(
    host_bench: Bench, tmp_path: Path, module: str, passes: bool
) -> None:
    site = tmp_path / "site"
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(PLUGIN)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\nanyname = {module}\n")
    host_bench.environment = OwnEnvironment(env={"PYTHONPATH": str(site)})
    host_bench.write("test_a.py", "def test_1(): assert 0\n")
    done = host_bench.run("test_a.py::test_1")
    assert (done.results[0].outcome is Outcome.PASSED) is passes, done
