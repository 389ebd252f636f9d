"""Where things lie, and how they are written: whole or not at all, at whatever instant a kill comes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from smith.errors import BadInput, Unavailable
from smith.paths import (
    Layout,
    find_root,
    locked,
    recover,
    remove_tree,
    replacing,
    require_root,
    write_atomically,
)


def python(code: str, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=False)


# The n-th call of the operating system's that changes a name never happens: the process is killed before or after it.
KILL = """
import os, signal, sys
from pathlib import Path
from smith import paths
step, after = int(sys.argv[2]), sys.argv[3] == "after"

def deadly(original):
    def call(*args, **options):
        global step
        step -= 1
        if step == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return original(*args, **options)
        finally:
            if step == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    return call

for name in ("mkdir", "rename", "replace", "unlink", "rmdir", "fsync", "chmod"):
    setattr(os, name, deadly(getattr(os, name)))
target = Path(sys.argv[1])
"""


def test_find_root(tmp_path: Path) -> None:
    assert find_root(tmp_path) is None
    with pytest.raises(BadInput, match=r"no smith\.toml"):
        require_root(tmp_path)
    (tmp_path / "smith.toml").write_text("")
    (tmp_path / "a/b").mkdir(parents=True)
    assert require_root(tmp_path / "a/b") == Layout(tmp_path.resolve())


def test_layout_stays_inside_the_root() -> None:
    layout = Layout(Path("/data"))
    assert layout.receipt("o__n-1", "abc", "interpreter:gfx942") == Path(
        "/data/tasks/receipts/o__n-1/abc/interpreter-gfx942.json"
    )
    assert layout.mirror("github.com", "o", "n") == Path("/data/.smith/mirrors/github.com/o/n.git")
    assert layout.state.is_relative_to(layout.volatile)


def test_write_atomically(tmp_path: Path) -> None:
    target = tmp_path / "new/folder/file"
    write_atomically(target, b"1\r\n")
    write_atomically(target, b"\xff", mode=0o600)
    assert target.read_bytes() == b"\xff" and stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [p.name for p in target.parent.iterdir()] == ["file"]
    write_atomically(target.with_name("x" * 200), b"")


def test_write_atomically_replaces_a_link_and_not_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "file").symlink_to("other")
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "other").read_text() == "kept" and not (tmp_path / "file").is_symlink()


def test_write_atomically_where_it_cannot(tmp_path: Path) -> None:
    (tmp_path / "folder/inner").mkdir(parents=True)
    for target in (Path("/proc/smith/x"), tmp_path / "folder"):
        with pytest.raises(Unavailable, match="nothing was changed"):
            write_atomically(target, b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    code = """
import resource, signal, sys; from pathlib import Path
from smith.errors import Unavailable; from smith.paths import replacing, write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for write in (lambda: write_atomically(Path(sys.argv[1]) / "file", b"x" * 5000), lambda: folder()):
    def folder():
        with replacing(Path(sys.argv[1]) / "folder") as fresh:
            (fresh / "big").write_bytes(b"x" * 5000)
    try: write()
    except Unavailable as error: print(error)
"""
    done = python(code, tmp_path)
    assert done.stdout.count("cannot be written: File too large (nothing was changed)") == 2, done.stderr
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"file": "old"}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_writing_leaves_the_old_or_the_new(tmp_path: Path, when: str) -> None:
    code = KILL + "paths.write_atomically(target, b'new' * 1000)\n"
    endings = set()
    for step in range(1, 12):
        target = tmp_path / str(step) / "file"
        target.parent.mkdir()
        target.write_bytes(b"old")
        done = python(code, target, step, when)
        assert target.read_bytes() in (b"old", b"new" * 1000)
        endings.add(target.read_bytes()[:3])
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert done.returncode == 0 and endings == {b"old", b"new"}


def test_replacing(tmp_path: Path) -> None:
    target = tmp_path / "deep/folder"
    for content in ("one", "two"):
        with replacing(target) as fresh:
            (fresh / "file").write_text(content)
        assert (target / "file").read_text() == content
        assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert [p.name for p in target.parent.iterdir()] == ["folder"]


def test_replacing_changes_nothing_after_an_error(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with replacing(target) as fresh:
        (fresh / "file").write_text("old")
    for error, raised in ((KeyError("x"), KeyError), (OSError(28, "No space left on device"), Unavailable)):
        with pytest.raises(raised), replacing(target) as fresh:
            (fresh / "file").write_text("new")
            raise error
        assert (target / "file").read_text() == "old"
        assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(Unavailable), replacing(Path("/proc/smith/x")):
        pass


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_replacing_leaves_the_old_or_the_new(tmp_path: Path, when: str) -> None:
    code = KILL + "with paths.replacing(target) as fresh:\n    for name in 'ab': (fresh / name).write_text('new')\n"
    endings = set()
    for step in range(1, 30):
        target = tmp_path / str(step) / "folder"
        target.mkdir(parents=True)
        for name in "ab":
            (target / name).write_text("old")
        done = python(code, target, step, when)
        recover(target)
        found = {p.name: p.read_text() for p in target.iterdir()}
        assert found in ({"a": "old", "b": "old"}, {"a": "new", "b": "new"})
        assert [p.name for p in target.parent.iterdir()] == ["folder"]
        endings.add(found["a"])
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert done.returncode == 0 and endings == {"old", "new"}


def test_recover_disturbs_nobody_at_work(tmp_path: Path) -> None:
    """A reader may call it while a living process is between its two renames."""
    target = tmp_path / "folder"
    with replacing(target) as fresh:
        (fresh / "file").write_text("old")
    with replacing(target) as fresh:
        (fresh / "file").write_text("new")
        target.rename(tmp_path / ".folder.old")
        recover(target)
        assert not target.exists() and (fresh / "file").exists()
    assert (target / "file").read_text() == "new"
    recover(target)
    recover(tmp_path / "never/there")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_remove_tree(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("x")
    victim = tmp_path / "victim"
    (victim / "a/b").mkdir(parents=True)
    (victim / "link").symlink_to(tmp_path / "kept")
    (victim / "a/dangling").symlink_to("nowhere")
    os.mkfifo(victim / "a/pipe")
    remove_tree(victim)
    remove_tree(victim)
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "link")
    assert [p.name for p in tmp_path.iterdir()] == ["kept"] and (tmp_path / "kept/file").exists()


def test_remove_tree_whatever_the_modes() -> None:
    code = """
import os, sys; from pathlib import Path
from smith.paths import remove_tree
if os.getuid() == 0:
    os.setuid(65534)
top = Path(sys.argv[1]) / "top"
(top / "a/b/c").mkdir(parents=True)
for name in ("a/f", "a/b/f", "a/b/c/f"):
    (top / name).write_text("x")
for name in ("a/b/c", "a/b", "a", "."):
    (top / name).chmod(0)
remove_tree(top)
print(top.exists())
"""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folder is closed to other users
        os.chmod(place, 0o777)
        assert python(code, place).stdout == "False\n"


def test_remove_tree_however_deep(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_locked(tmp_path: Path) -> None:
    lock = tmp_path / "deep/one.lock"
    code = (
        "import sys, time; from pathlib import Path; from smith.paths import locked\n"
        "with locked(Path(sys.argv[1])): print(1, flush=True); time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(lock)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(BadInput, match="one is in use"), locked(lock, wait=False):
        pass
    holder.kill()
    began = time.monotonic()
    with locked(lock):
        assert time.monotonic() - began < 10
    holder.wait()
    holder.stdout.close()
    with pytest.raises(Unavailable), locked(Path("/proc/smith/x.lock")):
        pass
