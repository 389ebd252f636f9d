"""What mining remembers: never a stale answer, never a reason to fail, and nothing lost in a kill."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smith.git.repository import Repository
from smith.mine import mine, rules
from smith.mine.discover import discover
from smith.mine.landed import read_history
from smith.mine.scan import Crew, shapes
from smith.mine.store import open_store
from smith.mine.survey import survey
from smith.records.candidate import Mined
from smith.records.config import MineConfig
from tests.mine.mine_upstreams import Upstream, kernel


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream.make(tmp_path / "up.git")
    for number in range(1, 6):
        upstream.squash(number, f"Fix {number}", {"pkg/add.py": kernel(value=number + 1), f"x{number}": "1"})
    return upstream


def run(upstream: Upstream, cache: Path | None, **how: object) -> Mined:
    return mine(upstream.repo, repo="o/r", url="u", cache=cache, **how)  # type: ignore[arg-type]


def known(cache: Path) -> int:
    with sqlite3.connect(cache) as db:
        return int(db.execute("SELECT count(*) FROM shapes").fetchone()[0])


def test_the_second_scan_is_the_first_and_reads_nothing(upstream: Upstream, tmp_path: Path) -> None:
    cache = tmp_path / "mining.db"
    first = run(upstream, cache)
    assert first == run(upstream, None) and known(cache) == 5
    # Without the blobs nothing can be read again.
    for path in upstream.trees[upstream.main]:
        oid = upstream.repo.text("rev-parse", f"main:{path}")
        upstream.repo.git_dir.joinpath("objects", oid[:2], oid[2:]).unlink(missing_ok=True)
    assert run(upstream, cache) == first


def test_what_could_not_be_read_is_not_remembered(upstream: Upstream, tmp_path: Path) -> None:
    cache = tmp_path / "mining.db"
    oid = upstream.repo.text("rev-parse", "main:pkg/add.py")
    blob = upstream.repo.git_dir / "objects" / oid[:2] / oid[2:]
    blob.rename(tmp_path / "blob")
    (note,) = run(upstream, cache).notes
    assert "1 changed files could not be read" in note
    (tmp_path / "blob").rename(blob)
    assert run(upstream, cache) == run(upstream, None)


def test_only_what_is_new_is_read(upstream: Upstream, tmp_path: Path) -> None:
    cache = tmp_path / "mining.db"
    run(upstream, cache)
    upstream.squash(6, "Fix 6", {"pkg/add.py": kernel(value=9)})
    steps: list[int] = []
    with open_store(cache, rules.load()) as store, Crew(upstream.repo, rules.load()) as crew:
        changes = [case.merged.changes for case in survey(upstream.repo, repo="o/r").cases]
        shapes(changes, store, crew, progress=steps.append)
    assert steps == [5, 1]
    assert len(run(upstream, cache).candidates) == 6


def test_a_remembered_history_is_the_history(tmp_path: Path) -> None:
    upstream = Upstream.make(tmp_path / "up.git")
    table, cache = rules.load(), tmp_path / "mining.db"
    steps = [
        lambda: upstream.squash(1, "Fix one", {"pkg/add.py": kernel(value=2), "pkg/\udcff.py": "x"}),
        lambda: upstream.merge(2, "Fix two", {"pkg/b.py": kernel("b")}),
        lambda: upstream.rebase(3, [("one", {"pkg/b.py": kernel("b", 2)}), ("two", {"pkg/c.py": kernel("c")})]),
        lambda: upstream.pull(4, [("half", {"pkg/d.py": "1"}), ("work", {"pkg/d.py": "2"})]),
        lambda: upstream.push("A lost number", {"pkg/d.py": "2"}),
        lambda: upstream.push("Pushed", {"pkg/b.py": None, "pkg/moved.py": kernel("b", 2)}),
        lambda: None,
        lambda: upstream.ref("refs/heads/main", upstream.repo.text("rev-parse", "main~2")),
        lambda: upstream.merge(5, "Back again", {"pkg/e.py": "1"}),
    ]
    for step in steps:
        step()
        for _ in range(2):
            with open_store(cache, table) as store:
                found, whole = read_history(upstream.repo, "refs/heads/main", store, "o/r")
                assert found == discover(upstream.repo, "main") and whole


def test_a_tip_that_is_gone_is_a_rewritten_history(upstream: Upstream, tmp_path: Path) -> None:
    cache = tmp_path / "mining.db"
    run(upstream, cache)
    gone = upstream.main
    upstream.main = upstream.repo.text("rev-parse", "main~2")
    upstream.ref("refs/heads/main", upstream.main)
    upstream.squash(9, "Fix 9", {"pkg/add.py": kernel(value=30)})
    (upstream.repo.git_dir / "objects" / gone[:2] / gone[2:]).unlink()
    found = run(upstream, cache)
    assert found.candidates == run(upstream, None).candidates and "rewritten" in found.notes[0]


def test_a_partial_clone_that_was_completed_is_read_again(tmp_path: Path) -> None:
    upstream = Upstream.make(tmp_path / "up.git")
    upstream.rebase(7, [("one", {"pkg/b.py": kernel("b")}), ("two", {"pkg/b.py": kernel("b", 2)})])
    upstream.repo.git("config", "uploadpack.allowFilter", "true")
    env = {**upstream.repo.environment, "GIT_ALLOW_PROTOCOL": "file"}
    address = upstream.repo.git_dir.as_uri()
    clone = tmp_path / "clone.git"
    for argv in (["clone", "-q", "--mirror", "--filter=blob:none", address, str(clone)],):
        subprocess.run(["git", *argv], env=env, check=True)
    cache = tmp_path / "mining.db"
    partial = mine(Repository(clone), repo="o/r", url="u", cache=cache)
    assert any("blobs are missing" in note for note in partial.notes)
    subprocess.run(["git", "fetch", "-q", "--refetch", "--no-filter"], cwd=clone, env=env, check=True)
    assert [c.pr for c in mine(Repository(clone), repo="o/r", url="u", cache=cache).candidates] == [7]


def test_only_new_landings_are_asked_of_git(upstream: Upstream, tmp_path: Path) -> None:
    cache = tmp_path / "mining.db"
    first = run(upstream, cache)
    upstream.squash(6, "Fix 6", {"pkg/add.py": kernel(value=9)})
    # The first commit cannot be read again.
    root = upstream.repo.text("rev-list", "--max-parents=0", "main")
    tree = upstream.repo.text("rev-parse", f"{root}^{{tree}}")
    (upstream.repo.git_dir / "objects" / tree[:2] / tree[2:]).unlink()
    again = run(upstream, cache)
    assert [(c.pr, c.base, c.merged) for c in again.candidates[1:]] == [
        (c.pr, c.base, c.merged) for c in first.candidates
    ]
    assert again.candidates[0].pr == 6


def test_other_rules_ask_again(upstream: Upstream, tmp_path: Path) -> None:
    cache = tmp_path / "mining.db"
    run(upstream, cache)
    config = MineConfig.parse({"rules": {"path": [{"role": "vendored", "dirs": ["pkg"]}]}}, "smith.toml")
    assert run(upstream, cache, config=config).candidates == ()
    assert len(run(upstream, cache).candidates) == 5


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 100, b"SQLite format 3\0" + bytes(4000)])
def test_a_damaged_cache_is_begun_anew(upstream: Upstream, tmp_path: Path, damage: bytes) -> None:
    cache = tmp_path / "mining.db"
    run(upstream, cache)
    for name in ("mining.db-wal", "mining.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    cache.write_bytes(damage)
    assert len(run(upstream, cache).candidates) == 5
    assert known(cache) == 5


def test_a_damaged_row_is_made_again(upstream: Upstream, tmp_path: Path) -> None:
    cache = tmp_path / "mining.db"
    first = run(upstream, cache)
    with sqlite3.connect(cache) as db:
        db.execute("UPDATE shapes SET shape = x'00'")
    assert run(upstream, cache) == first


def test_a_cache_that_cannot_be_written_is_none(upstream: Upstream) -> None:
    assert len(run(upstream, Path("/proc/nowhere/mining.db")).candidates) == 5


def test_a_rewritten_history_is_said(upstream: Upstream, tmp_path: Path) -> None:
    cache = tmp_path / "mining.db"
    assert run(upstream, cache).notes == ()
    upstream.squash(6, "Fix 6", {"pkg/add.py": kernel(value=9)})
    assert run(upstream, cache).notes == ()
    parents = upstream.repo.text("rev-list", "--first-parent", "main").splitlines()
    upstream.main = parents[2]
    upstream.ref("refs/heads/main", upstream.main)
    upstream.squash(7, "Fix 7", {"pkg/add.py": kernel(value=10)})
    (note,) = run(upstream, cache).notes
    assert "main was rewritten" in note and "2 landed commits" in note
    assert run(upstream, cache).notes == ()


def test_many_processes_give_what_one_gives(tmp_path: Path) -> None:
    upstream = Upstream.make(tmp_path / "up.git")
    for number in range(1, 41):
        upstream.squash(number, f"Fix {number}", {f"pkg/k{number % 7}.py": kernel(value=number + 1)})
    changes = [case.merged.changes for case in survey(upstream.repo, repo="o/r").cases] * 4
    # As many landings as make it worth while: copies with another name each.
    table = rules.load()
    many = [tuple(c.__class__(*_renamed(c, n)) for c in one) for n, one in enumerate(changes)]
    with open_store(None, table) as store, Crew(upstream.repo, table, jobs=1) as crew:
        one = shapes(many, store, crew)
    with open_store(tmp_path / "mining.db", table) as store, Crew(upstream.repo, table, jobs=2) as crew:
        two = shapes(many, store, crew)
        assert two == one and len(many) >= 150
        steps: list[int] = []
        assert shapes(many, store, crew, progress=steps.append) == one
        assert steps == [len(many)]


def _renamed(change: object, n: int) -> list[str]:
    fields = [getattr(change, name) for name in ("old_mode", "new_mode", "old_oid", "new_oid", "status", "path")]
    return [*fields[:-1], f"{n}/{fields[-1]}"]


SCAN = """
import sys
from pathlib import Path
from smith.git.repository import Repository
from smith.mine import mine
if __name__ == "__main__":
    mine(Repository(Path(sys.argv[1])), repo="o/r", url="u", cache=Path(sys.argv[2]), jobs=2)
"""


def test_a_kill_ends_the_workers_and_the_next_scan_goes_on(tmp_path: Path) -> None:
    upstream = Upstream.make(tmp_path / "up.git")
    lines: list[bytes] = [b"feature done"]
    body = "\n".join(kernel(f"k{n}").partition("\n\n\n")[2] for n in range(60))
    head = kernel().partition("\n\n\n")[0] + "\n\n\n"
    for number in range(1, 400):
        text = (head + body.replace("offs = ", f"offs = {number} + ", number % 60)).encode()
        words = f"Fix {number} (#{number})".encode()
        lines += [
            b"commit refs/heads/main",
            b"committer A <a@example.org> %d +0000" % (1_800_000_000 + number),
            b"data %d\n%s" % (len(words), words),
            *([b"from refs/heads/main^0"] if number == 1 else []),
            b"M 100644 inline pkg/many.py\ndata %d\n%s" % (len(text), text),
        ]
    subprocess.run(
        upstream.repo.argv("fast-import", "--quiet", "--done"),
        input=b"\n".join([*lines, b"done", b""]),
        check=True,
        env=upstream.repo.environment,
    )
    script = tmp_path / "scan.py"
    script.write_text(SCAN)
    cache = tmp_path / "mining.db"
    argv = [sys.executable, str(script), str(upstream.repo.git_dir), str(cache)]
    child = subprocess.Popen(argv, start_new_session=True)
    deadline = time.monotonic() + 60
    while child.poll() is None and time.monotonic() < deadline and not (cache.exists() and _some(cache)):
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + 20
    while _group(child.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _group(child.pid) == []
    assert known(cache) > 0
    assert len(run(upstream, cache).candidates) == 399
    assert known(cache) == 399


def _some(cache: Path) -> bool:
    try:
        return known(cache) > 0
    except sqlite3.Error:
        return False


def _group(leader: int) -> list[int]:
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            members.append(int(stat.parent.name))
    return members
