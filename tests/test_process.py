"""The one door to subprocesses: limits, whole groups, long outputs, odd children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smith import process
from smith.errors import CommandFailed, Unavailable
from smith.process import kill_group, run, start, stream


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def sh(script: str, **options: object) -> process.Completed:
    return run(["sh", "-c", script], **options)  # type: ignore[arg-type]


def test_status_and_streams() -> None:
    done = sh("echo out; echo err >&2; exit 3")
    assert (done.status, done.stdout.data, done.stderr.data, done.ok) == (3, b"out\n", b"err\n", False)
    assert done.ending == "status 3"
    with pytest.raises(CommandFailed, match="status 3: err"):
        done.check()
    assert sh("true").check().ending == "ok"


@pytest.mark.parametrize(("number", "ending"), [(9, "killed by SIGKILL"), (40, "killed by signal 40")])
def test_signals(number: int, ending: str) -> None:
    assert sh(f"kill -{number} $$").ending == ending


def test_bytes_are_kept_as_they_are() -> None:
    done = sh(r"printf '\377\000\r\n'")
    assert done.stdout.data == b"\xff\0\r\n"
    assert done.stdout.text == "\ufffd\0\r\n"


def test_a_child_leads_its_own_group_and_session() -> None:
    done = run([sys.executable, "-c", "import os; print(os.getpid() == os.getpgrp() == os.getsid(0))"])
    assert done.stdout.text == "True\n"


def test_time_limit_kills_grandchildren(tmp_path: Path) -> None:
    began = time.monotonic()
    done = sh(f"sleep 300 & echo $! >{tmp_path}/pid; sleep 300", timeout_s=0.5)
    assert done.timed_out and not done.ok and done.ending.startswith("timed out")
    assert time.monotonic() - began < 5
    assert not alive(int((tmp_path / "pid").read_text()))


def test_time_limit_holds_for_a_child_that_closed_its_outputs() -> None:
    assert sh("exec >&- 2>&-; sleep 300", timeout_s=0.5).timed_out


def test_grandchildren_do_not_outlive_a_good_end(tmp_path: Path) -> None:
    began = time.monotonic()
    done = sh(f"sleep 300 & echo $! >{tmp_path}/pid; echo done")
    assert done.ok and done.stdout.data == b"done\n"
    assert time.monotonic() - began < 5
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_child_that_ignores_term_is_killed(tmp_path: Path) -> None:
    script = f"trap '' TERM; echo ready >{tmp_path}/ready; while :; do sleep 0.05; done"
    child = start(["sh", "-c", script], stdout=subprocess.DEVNULL)
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    began = time.monotonic()
    assert kill_group(child, grace_s=0.3)
    assert 0.3 <= time.monotonic() - began < 5
    assert child.returncode == -signal.SIGKILL
    assert kill_group(child)  # again, when all is over


def test_grace_lets_a_child_clean_up(tmp_path: Path) -> None:
    script = (
        f"trap 'echo clean >{tmp_path}/end; exit 7' TERM; echo ready >{tmp_path}/ready; while :; do sleep 0.05; done"
    )
    child = start(["sh", "-c", script])
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    kill_group(child, grace_s=10)
    assert child.returncode == 7
    assert (tmp_path / "end").read_text() == "clean\n"


def test_the_whole_group_is_gone_when_kill_group_returns(tmp_path: Path) -> None:
    script = f"for i in 1 2 3 4 5 6 7 8; do sleep 300 & echo $! >>{tmp_path}/pids; done; echo >{tmp_path}/ready; wait"
    child = start(["sh", "-c", script])
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    assert kill_group(child)
    assert not any(alive(int(pid)) for pid in (tmp_path / "pids").read_text().split())


def test_input_larger_than_a_pipe() -> None:
    data = os.urandom(3_000_000)
    done = run(["cat"], input=data, keep=None)
    assert done.stdout.data == data
    assert run(["cat"], input=b"").stdout.data == b""


def test_input_that_nobody_reads() -> None:
    assert sh("exec <&-; sleep 0.2; exit 4", input=b"x" * 1_000_000).status == 4
    assert sh("exit 5", input=b"x" * 1_000_000).status == 5


def test_input_is_fed_after_the_outputs_are_closed(tmp_path: Path) -> None:
    done = sh(f"exec >&- 2>&-; sleep 0.2; wc -c >{tmp_path}/n", input=b"x" * 1_000_000, timeout_s=20)
    assert done.ok
    assert int((tmp_path / "n").read_text()) == 1_000_000


def test_no_input_is_an_empty_one() -> None:
    assert run(["cat"]).ok


def test_long_output_keeps_head_and_tail(tmp_path: Path) -> None:
    code = "import sys\nfor i in range(200000): sys.stdout.write(f'{i:07d}\\n')"
    whole = b"".join(b"%07d\n" % i for i in range(200000))
    done = run([sys.executable, "-c", code], keep=(1000, 3000), spill=tmp_path / "logs/out")
    assert done.stdout.total == len(whole)
    assert (done.stdout.head, done.stdout.tail) == (whole[:1000], whole[-3000:])
    assert done.stdout.cut == len(whole) - 4000
    assert done.stdout.spilled == tmp_path / "logs/out.stdout"
    assert done.stdout.spilled.read_bytes() == whole
    assert b"bytes cut, whole in out.stdout" in done.stdout.data
    assert done.stderr.spilled is None and not (tmp_path / "logs/out.stderr").exists()


def test_long_output_without_a_spill() -> None:
    done = run([sys.executable, "-c", "print('a' * 5_000_000 + 'end')"], keep=(10, 10))
    assert (done.stdout.head, done.stdout.tail) == (b"a" * 10, b"a" * 6 + b"end\n")
    assert done.stdout.spilled is None and b"bytes cut ..." in done.stdout.data


@pytest.mark.parametrize("length", [0, 9, 10, 11, 19, 20, 21, 40, 41])
def test_nothing_is_lost_at_the_edges(tmp_path: Path, length: int) -> None:
    data = bytes(range(65, 65 + length))
    for spill in (None, tmp_path / "s"):
        out = run(["cat"], input=data, keep=(10, 10), spill=spill).stdout
        assert out.total == length
        assert out.head + out.tail == (data if length <= 20 else data[:10] + data[-10:])
        assert (out.spilled is not None) == (spill is not None and length > 20)
        if out.spilled:
            assert out.spilled.read_bytes() == data


def test_a_spill_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot be written"):
        sh("yes | head -c 100000", keep=(10, 10), spill=tmp_path / "file/below")


def test_what_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="is not installed"):
        run(["no-such-program-anywhere"])
    with pytest.raises(Unavailable, match="does not exist"):
        run(["true"], cwd=tmp_path / "absent")
    (tmp_path / "plain").write_text("x")
    for argv, cwd in ((["true"], tmp_path / "plain"), ([tmp_path / "plain"], None), (["echo", "x" * 3_000_000], None)):
        with pytest.raises(Unavailable, match="cannot be started"):
            run(argv, cwd=cwd)


def test_environment_is_exactly_what_is_given() -> None:
    assert run(["/usr/bin/env"], env={"ONLY": "this"}).stdout.text == "ONLY=this\n"


def test_descriptors_are_passed_only_when_named() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code = f"import os; os.fstat({writing})"
        assert not run([sys.executable, "-c", code]).ok
        assert run([sys.executable, "-c", code], pass_fds=[writing]).ok
    finally:
        os.close(writing)


def test_stream_yields_as_it_comes_and_reports_a_bad_end() -> None:
    assert b"".join(stream(["seq", "100000"])).endswith(b"99999\n100000\n")
    got = stream(["sh", "-c", "echo one; sleep 0.1; echo because >&2; exit 2"])
    assert next(got) == b"one\n"
    with pytest.raises(CommandFailed, match="status 2: because"):
        next(got)


def test_a_stream_left_early_leaves_no_child(tmp_path: Path) -> None:
    got = stream(["sh", "-c", f"echo $$ >{tmp_path}/pid; yes"])
    next(got)
    got.close()  # type: ignore[attr-defined]
    assert not alive(int((tmp_path / "pid").read_text()))


def test_an_interrupt_kills_the_child(tmp_path: Path) -> None:
    code = (
        "import sys; from smith.process import run\n"
        "try: run(['sh', '-c', f'echo $$ >{sys.argv[1]}/pid; sleep 300'])\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=20)[0] == "interrupted\n"
    assert not alive(int((tmp_path / "pid").read_text()))
