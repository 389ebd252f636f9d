"""No isolation, but the same interface and the same limits."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from sandbox_cases import PYTHON, on_host, unique

from smith.errors import Unavailable
from smith.sandbox import Bind, Command, Ended, Limits, make

host = make("host")


def sh(script: str, cwd: Path, wall_s: float = 20, file_bytes: int = 1 << 30) -> Ended:
    limits = Limits(wall_s=wall_s, file_bytes=file_bytes)
    return host.run(Command(["sh", "-c", script], cwd=str(cwd), env={"GIVEN": "1"}, limits=limits))


def test_a_bind_can_only_stay_where_it_is(tmp_path: Path) -> None:
    assert not host.remaps
    stays, moves = Bind(tmp_path, str(tmp_path)), Bind(tmp_path, "/data")
    assert host.run(Command(["true"], cwd=str(tmp_path), binds=[stays], limits=Limits(5))).ok
    with pytest.raises(Unavailable, match="/data"):
        host.run(Command(["true"], cwd=str(tmp_path), binds=[moves], limits=Limits(5)))


def test_nothing_of_the_environment_is_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "planted")
    words = sh("env", tmp_path).stdout.text
    assert "GIVEN=1" in words and f"HOME={tmp_path}" in words and "planted" not in words


def test_descriptors_and_input_get_through(tmp_path: Path) -> None:
    read, write = os.pipe()
    script = f"import os, sys; os.write({write}, sys.stdin.buffer.read())"
    ended = host.run(
        Command([PYTHON, "-c", script], cwd=str(tmp_path), limits=Limits(10), pass_fds=[write], input=b"x")
    )
    os.close(write)
    assert ended.ok and os.read(read, 10) == b"x"
    os.close(read)


@pytest.mark.parametrize("last", ["sleep", "true"])
def test_nothing_outlives_the_command(tmp_path: Path, last: str) -> None:
    number = unique()
    script = f"setsid sh -c 'setsid sleep {number} & sleep {number}' & sleep 0.2; {last} {number}"
    began = time.monotonic()
    assert sh(script, tmp_path, wall_s=2).timed_out is (last == "sleep")
    assert time.monotonic() - began < 10 and not on_host(number)


def test_limits_hold(tmp_path: Path) -> None:
    ended = sh("head -c 3M /dev/zero > big; stat -c %s big; ulimit -c", tmp_path, file_bytes=1 << 20)
    assert ended.stdout.text.split() == [str(1 << 20), "0"]
    fork = "import os, time\nfor _ in range(3):\n    os.fork()\nheld = bytearray(40 << 20)\ntime.sleep(20)"
    limits = Limits(wall_s=20, memory_bytes=200 << 20)
    ended = host.run(Command([PYTHON, "-S", "-c", fork], cwd=str(tmp_path), limits=limits))
    assert ended.breach == "memory"
