"""Groups: each in a process of its own, nothing of one living on into the next, one group's end not another's."""

from __future__ import annotations

from harness_bench import Bench

from smith.harness.run import Group, run_groups
from smith.records.results import Outcome, TestRun


def groups(bench: Bench, *ids: str, wall_s: float = 60.0) -> list[TestRun]:
    wanted = [Group((test_id,), id_timeout_s=30.0, wall_s=wall_s) for test_id in ids]
    return run_groups(bench.sandbox, bench.place, bench.environment, bench.recipe, "cpu", wanted)


def outcomes(runs: list[TestRun]) -> list[Outcome]:
    return [r.outcome for run in runs for r in run.results]


def test_what_one_group_changes_in_its_process_no_other_sees(bench: Bench) -> None:
    bench.write(
        "test_a.py",
        "import builtins\n"
        "def test_marks(): builtins.marked = True\n"
        "def test_sees(): assert not hasattr(builtins, 'marked')\n",
    )
    assert outcomes(groups(bench, "test_a.py::test_marks", "test_a.py::test_sees")) == [Outcome.PASSED] * 2


def test_a_crash_and_a_time_out_are_of_their_own_group_only(bench: Bench) -> None:
    bench.write(
        "test_a.py",
        "import os, signal, time\n"
        "def test_first(): pass\n"
        "def test_crash(): os.kill(os.getpid(), signal.SIGSEGV)\n"
        "def test_hang():\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "    time.sleep(60)\n"
        "def test_last(): pass\n",
    )
    runs = groups(bench, *(f"test_a.py::test_{n}" for n in ("first", "crash", "hang", "last")), wall_s=3.0)
    assert outcomes(runs) == [Outcome.PASSED, Outcome.CRASHED, Outcome.TIMEOUT, Outcome.PASSED]
    assert [run.complete for run in runs] == [True, False, False, True]
    assert "SIGSEGV" in runs[1].ending


def test_a_process_that_a_group_leaves_behind_is_gone_before_the_next(bench: Bench) -> None:
    bench.write(
        "test_a.py",
        "import os, pathlib, subprocess, sys\n"
        "def test_leaves():\n"
        "    p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "    pathlib.Path('/tmp/pid').write_text(str(p.pid))\n"
        "def test_looks():\n"
        "    pid = pathlib.Path('/tmp/pid').read_text()\n"
        "    stat = pathlib.Path(f'/proc/{pid}/stat')\n"
        "    assert not stat.exists() or stat.read_text().rpartition(')')[2].split()[0] == 'Z'\n",
    )
    assert outcomes(groups(bench, "test_a.py::test_leaves", "test_a.py::test_looks")) == [Outcome.PASSED] * 2


def test_the_plans_of_later_groups_are_out_of_reach(bench: Bench) -> None:
    bench.write(
        "test_a.py",
        "import os, pytest\n"
        "def test_steals():\n"
        "    assert os.read(0, 10) == b''\n"
        "    for name in ('fd/0', 'mem', 'environ'):\n"
        "        with pytest.raises(OSError): open(f'/proc/{os.getppid()}/{name}', 'rb').read(1)\n"
        "def test_next(): pass\n",
    )
    assert outcomes(groups(bench, "test_a.py::test_steals", "test_a.py::test_next")) == [Outcome.PASSED] * 2


def test_after_a_failure_nothing_more_is_run_where_that_is_asked_for(bench: Bench) -> None:
    bench.write(
        "test_a.py",
        "def test_good(): pass\ndef test_bad(): assert 0\ndef test_behind(): open('/tmp/ran', 'w').close()\n",
    )
    bench.write("test_b.py", "def test_later(): pass\n")
    files = {"a": ("good", "bad", "behind"), "b": ("later",)}
    wanted = [
        Group(tuple(f"test_{file}.py::test_{n}" for n in names), id_timeout_s=30.0, wall_s=60.0, stop_at_failure=True)
        for file, names in files.items()
    ]
    runs = run_groups(bench.sandbox, bench.place, bench.environment, bench.recipe, "cpu", wanted)
    assert outcomes(runs) == [Outcome.PASSED, Outcome.FAILED, Outcome.MISSING, Outcome.MISSING]
    assert not any("tampered" in run.note for run in runs)
    good = [Group(("test_b.py::test_later",), 30.0, 60.0, stop_at_failure=True), *wanted]
    runs = run_groups(bench.sandbox, bench.place, bench.environment, bench.recipe, "cpu", good)
    assert outcomes(runs)[:3] == [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED]
