"""Programs that want to be believed. Each fails, and what honest tests reported before it is kept."""

from __future__ import annotations

import os
import subprocess

import pytest
from harness_bench import Bench

from smith.records.results import Outcome, TestRun


def outcomes(done: TestRun) -> list[Outcome]:
    return [r.outcome for r in done.results]


@pytest.mark.parametrize(
    "body",
    [
        "import os; os._exit(0)",
        "import ctypes; ctypes.string_at(0)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os; os.execv('/bin/true', ['true'])",
    ],
    ids=["exit", "segfault", "kill", "exec"],
)
def test_ending_the_process_early_is_a_crash_of_that_id(bench: Bench, body: str) -> None:
    bench.write("test_a.py", f"def test_1(): pass\ndef test_2():\n    {body}\ndef test_3(): pass\n")
    done = bench.run("test_a.py::test_1", "test_a.py::test_2", "test_a.py::test_3")
    assert outcomes(done) == [Outcome.PASSED, Outcome.CRASHED, Outcome.MISSING]
    assert not done.complete and "no closing record" in done.note


def test_ending_the_process_while_collecting_leaves_nothing(bench: Bench) -> None:
    bench.write("test_a.py", "import os\nprint('1 passed in 0.01s')\nos._exit(0)\ndef test_1(): pass\n")
    done = bench.run("test_a.py::test_1")
    assert outcomes(done) == [Outcome.MISSING] and not done.complete


# How in-process code finds the descriptor of the channel: it is the one pipe that is not a standard stream.
FIND = """\
import os, stat
def test_it():
    fds = [fd for fd in range(3, 256) if os.path.exists(f"/proc/self/fd/{fd}") and stat.S_ISFIFO(os.fstat(fd).st_mode)]
    for fd in fds:
        try:
            os.write(fd, LINE)
        except OSError:
            pass
    assert 0
"""


def test_forged_lines_on_the_channel_are_tampering(bench: Bench) -> None:
    line = b'{"kind": "result", "id": "test_one.py::test_it", "outcome": "passed"}\n'
    result, done = bench.one(f"LINE = {line!r}\n" + FIND)
    assert result.outcome is Outcome.CRASHED
    assert done.note.startswith("tampered: ") and not done.complete


def test_a_record_sent_again_is_tampering(bench: Bench) -> None:
    """The reporter's own function, found through the garbage collector, signs whatever it is given: here a lie."""
    _result, done = bench.one(
        """\
        import gc
        from types import FunctionType
        def test_it():
            found = [f for f in gc.get_objects() if isinstance(f, FunctionType) and f.__qualname__ == "open_channel.<locals>.send"]
            for send in found * 2:
                send("result", id="test_one.py::test_it", outcome="passed", seconds=0.0, failure=None, message="", launches={})
        """  # noqa: E501
    )
    assert done.note.startswith("tampered: ") and not done.complete


def test_forged_output_changes_nothing(bench: Bench) -> None:
    result, done = bench.one(
        """\
        import sys
        def test_it():
            sys.__stdout__.write("\\ntest_one.py::test_it PASSED\\n1 passed in 0.01s\\n")
            sys.__stderr__.write('{"kind": "result", "id": "test_one.py::test_it", "outcome": "passed"}\\n')
            assert 0
        """
    )
    assert result.outcome is Outcome.FAILED and done.complete


def test_replaced_clocks_and_encoders_do_not_reach_the_reporter(bench: Bench) -> None:
    result, done = bench.one(
        """\
        import hmac, json, os, time
        def nothing(*args, **kwargs): return 0
        time.perf_counter = json.dumps = hmac.new = os.getpid = nothing
        def test_it():
            os.write = lambda fd, data: len(data)
            time.sleep(0.2)
            assert 0
        """
    )
    assert result.outcome is Outcome.FAILED and done.complete and result.seconds >= 0.2


def test_a_hook_that_turns_failures_into_passes_is_not_believed(bench: Bench) -> None:
    bench.write(
        "conftest.py",
        """\
        import pytest
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_makereport(item, call):
            outcome = yield
            outcome.get_result().outcome = "passed"
        """,
    )
    result, done = bench.one("def test_it(): assert 0\n")
    assert result.outcome is Outcome.FAILED and done.complete


def test_a_hook_that_takes_the_test_over_is_an_error(bench: Bench) -> None:
    bench.write("conftest.py", "def pytest_runtest_protocol(item, nextitem): return True\n")
    result, _ = bench.one("def test_it(): assert 0\n")
    assert result.outcome is Outcome.ERROR


def test_a_hook_that_deselects_leaves_ids_missing(bench: Bench) -> None:
    bench.write("conftest.py", "def pytest_collection_modifyitems(items): items[:] = []\n")
    result, done = bench.one("def test_it(): assert 0\n")
    assert result.outcome is Outcome.MISSING and done.collected == ()


def test_plugins_on_the_path_and_shadow_modules_are_not_loaded(bench: Bench) -> None:
    bench.write("cheat.egg-info/PKG-INFO", "Name: cheat\nVersion: 1\n")
    bench.write("cheat.egg-info/entry_points.txt", "[pytest11]\ncheat = cheat\n")
    bench.write("cheat.py", "def pytest_runtest_protocol(item, nextitem): return True\n")
    for name in ("pytest", "json", "hmac", "smith/__init__", "smith/inside/reporter", "sitecustomize", "usercustomize"):
        bench.write(f"{name}.py", "import os; os._exit(0)\n")
    result, done = bench.one("def test_it(): assert 0\n")
    assert result.outcome is Outcome.FAILED and done.complete


def test_fifty_megabytes_of_output_are_only_output(bench: Bench) -> None:
    result, done = bench.one(
        """\
        import os, sys
        def test_it(capfd):
            with capfd.disabled():
                for _ in range(50):
                    os.write(1, b"PASSED\\n" * 150_000)
            assert 0
        """
    )
    assert result.outcome is Outcome.FAILED and done.complete


def test_a_background_process_is_gone(bench: Bench) -> None:
    marker = f"86{os.getpid()}"
    result, _ = bench.one(f"import subprocess\ndef test_it(): subprocess.Popen(['setsid', 'sleep', '{marker}'])\n")
    assert result.outcome is Outcome.PASSED
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert marker not in listed


def test_code_that_never_returns_to_the_interpreter_is_ended_with_its_result(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.prelude = bench.place.root / "prelude.py"
    bench.prelude.write_text("import smith.inside.clock as clock; clock.AGAIN_S = 0.5\n")
    bench.write(
        "test_a.py",
        """\
        import ctypes
        def test_1(): pass
        def test_2():
            mutex = ctypes.create_string_buffer(64)
            lock = ctypes.CDLL(None).pthread_mutex_lock
            lock(mutex); lock(mutex)
        def test_3(): pass
        """,
    )
    done = bench.run("test_a.py::test_1", "test_a.py::test_2", "test_a.py::test_3", id_timeout_s=1)
    assert outcomes(done) == [Outcome.PASSED, Outcome.TIMEOUT, Outcome.MISSING]
    assert not done.complete and done.ending == "status 75"


def test_unreadable_and_deep_leftovers_do_not_stop_the_cleaning(bench: Bench) -> None:
    bench.write(
        "test_one.py",
        """\
        import os
        def test_it():
            os.makedirs("locked/in"); os.chmod("locked/in", 0); os.chmod("locked", 0)
            os.mkfifo("fifo"); os.symlink("/", "root")
            os.mkdir("deep"); os.chdir("deep")
            for _ in range(1100):
                os.mkdir("d"); os.chdir("d")
        """,
    )
    done = bench.run("test_one.py::test_it", source_writable=True)
    assert outcomes(done) == [Outcome.PASSED], done
