"""Temporary folders: gone at the end, and after a kill with the next process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from smith.errors import Unavailable

WORK = """
import os, signal, sys
from smith import temporary
with temporary.folder("work") as folder:
    (folder / "locked").mkdir()
    (folder / "locked" / "file").write_text("x")
    (folder / "locked").chmod(0)
    print(folder, flush=True)
    if sys.argv[1] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "wait":
        sys.stdin.readline()
own = temporary.own()
if sys.argv[1] == "fork":
    if os.fork() == 0:
        assert temporary.own() != own and temporary.own().is_dir()
        sys.exit()
    assert os.wait()[1] == 0
print(own.is_dir())
"""


def run(place: Path, how: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "TMPDIR": str(place)}
    return subprocess.run([sys.executable, "-c", WORK, how], env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("how", ["end", "fork"])
def test_nothing_is_left_at_the_end(tmp_path: Path, how: str) -> None:
    done = run(tmp_path, how)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True"
    assert list(tmp_path.iterdir()) == []


def test_the_next_process_removes_what_a_killed_one_left_and_nothing_of_a_living_one(tmp_path: Path) -> None:
    assert run(tmp_path, "die").returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / "smith-tmp-link").symlink_to(tmp_path.parent)
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    argv = [sys.executable, "-c", WORK, "wait"]
    with subprocess.Popen(argv, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as living:
        assert living.stdin is not None and living.stdout is not None
        folder = Path(living.stdout.readline().strip())
        assert run(tmp_path, "end").returncode == 0
        assert folder.is_dir()
        left = {p for p in tmp_path.iterdir() if not p.is_symlink()}
        assert left == {folder.parent}
        living.stdin.write("\n")
        living.stdin.flush()
        assert living.wait(timeout=30) == 0
    assert [p.name for p in tmp_path.iterdir()] == ["smith-tmp-link"]


def test_a_disk_that_cannot_be_written_is_said() -> None:
    code = "from smith import temporary\ntemporary.own()"
    env = {**os.environ, "TMPDIR": "/proc/1/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", f"import tempfile; tempfile.tempdir='/proc/self'\n{code}"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0 and Unavailable.__name__ in done.stderr
