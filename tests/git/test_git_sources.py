"""Frozen sources: complete or absent, whatever happens; and scratch stores that leave no trace."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from git_worlds import FILE, LINK, World, commit_all, git, plant

from smith.errors import BadInput, Unavailable
from smith.git.patches import apply, diff
from smith.git.repository import EMPTY_TREE, Repository
from smith.git.sources import SOURCES, Kept, has, keep, scratch
from smith.git.trees import TreeEntry, list_tree, materialise, read_file, snapshot, write_blob, write_tree

NOWHERE = "1" * 40


def world(seed: int, files: int = 12) -> World:
    chance = random.Random(seed)
    return {b"d%d/f%d" % (i % 3, i): (FILE, chance.randbytes(200)) for i in range(files)} | {b"link": (LINK, b"d0")}


@pytest.fixture
def source(work: Path) -> Repository:
    plant(work, world(1))
    commit_all(work)
    return Repository.discover(work)


def fingerprint(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder with its size and time."""
    stats = {str(p.relative_to(folder)): p.stat() for p in folder.rglob("*") if p.is_file()}
    return {name: (s.st_size, s.st_mtime_ns) for name, s in stats.items()}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; git may freshen the time of an object that it finds already there."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_keep(repo: Repository, source: Repository, tmp_path: Path) -> None:
    tree = source.resolve("HEAD", "tree")
    before = fingerprint(source.git_dir)
    assert not has(repo, tree)
    assert keep(repo, source, tree) == Kept(tree)
    assert has(repo, tree)
    assert fingerprint(source.git_dir) == before
    after = contents(repo.git_dir)
    assert keep(repo, source, tree) == Kept(tree)
    assert contents(repo.git_dir) == after
    subprocess.run(["rm", "-rf", source.git_dir], check=True)  # upstream vanishes
    git("gc", "-q", "--prune=now", cwd=repo.git_dir)
    materialise(repo, tree, tmp_path / "out")
    assert snapshot(repo, tmp_path / "out", base=tree) == tree
    git("fsck", "--strict", cwd=repo.git_dir)


def test_the_commit_is_the_same_everywhere_and_has_no_past(
    repo: Repository, source: Repository, tmp_path: Path, turn_hostile: Callable[[Repository], None]
) -> None:
    tree = source.resolve("HEAD", "tree")
    keep(repo, source, tree)
    other = Repository.init_bare(tmp_path / "other.git")
    turn_hostile(other)
    keep(other, source, tree)
    assert repo.refs(SOURCES) == other.refs(SOURCES)
    commit = repo.refs(SOURCES)[SOURCES + tree]
    assert repo.text("cat-file", "commit", commit) == (
        f"tree {tree}\nauthor smith <smith@localhost> 0 +0000\ncommitter smith <smith@localhost> 0 +0000\n\n"
        f"Frozen source {tree}"
    )


def test_only_what_is_lacking_is_copied(repo: Repository, source: Repository, work: Path) -> None:
    keep(repo, source, source.resolve("HEAD", "tree"))
    before = {p for p in (repo.git_dir / "objects").rglob("*") if p.is_file()}
    (work / "d0/f0").write_text("changed")
    commit_all(work)
    keep(repo, source, source.resolve("HEAD", "tree"))
    new = {p for p in (repo.git_dir / "objects").rglob("*") if p.is_file()} - before
    assert len(new) == 4  # blob, two trees, commit


def test_many_objects_come_as_one_pack(repo: Repository, work: Path) -> None:
    plant(work, world(2, files=300))
    commit_all(work)
    source = Repository.discover(work)
    tree = source.resolve("HEAD", "tree")
    keep(repo, source, tree)
    assert len(list((repo.git_dir / "objects/pack").glob("*.pack"))) == 1
    assert has(repo, tree)


def test_has_sees_what_is_incomplete(repo: Repository, source: Repository) -> None:
    tree = source.resolve("HEAD", "tree")
    keep(repo, source, tree)
    entry = next(e for e in list_tree(repo, tree) if e.path == b"d0/f0")
    (repo.git_dir / "objects" / entry.oid[:2] / entry.oid[2:]).unlink()
    assert not has(repo, tree)
    keep(repo, source, tree)
    assert has(repo, tree)
    for oid in {e.oid for e in list_tree(repo, tree, trees=True)}:
        (repo.git_dir / "objects" / oid[:2] / oid[2:]).unlink()
    assert not has(repo, tree)


def test_a_partial_source(repo: Repository, source: Repository) -> None:
    here = write_blob(source, b"x")
    entries = [
        TreeEntry(FILE, "blob", here, b"small"),
        TreeEntry(FILE, "blob", NOWHERE, b"big/a.bin"),
        TreeEntry("160000", "commit", "2" * 40, b"third/party"),
    ]
    tree = write_tree(source, entries, missing_ok=True)
    before = fingerprint(source.git_dir)
    kept = keep(repo, source, tree)
    assert kept.left_out == ("big/a.bin",) and kept.tree != tree
    assert {e.path for e in list_tree(repo, kept.tree)} == {b"small", b"third/party"}
    assert has(repo, kept.tree) and not has(repo, tree)
    assert fingerprint(source.git_dir) == before
    assert keep(repo, source, tree) == kept


def test_the_empty_tree(repo: Repository, source: Repository) -> None:
    assert keep(repo, source, EMPTY_TREE) == Kept(EMPTY_TREE)
    assert has(repo, EMPTY_TREE)


def test_what_cannot_be_kept(repo: Repository, source: Repository, tmp_path: Path) -> None:
    for tree in (NOWHERE, "HEAD"):
        with pytest.raises(BadInput):
            keep(repo, source, tree)
    assert repo.refs(SOURCES) == {}


def test_a_full_disk_leaves_no_reference(repo: Repository, source: Repository) -> None:
    big = write_tree(source, [TreeEntry(FILE, "blob", write_blob(source, os.urandom(300_000)), b"big")])
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from smith.errors import Unavailable; from smith.git.repository import Repository\n"
        "from smith.git.sources import keep\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: keep(Repository(Path(sys.argv[1])), Repository(Path(sys.argv[2])), sys.argv[3])\n"
        "except Unavailable as error: print(error)\n"
    )
    argv = [sys.executable, "-c", code, str(repo.git_dir), str(source.git_dir), big]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "objects cannot be written" in done.stdout
    assert repo.refs(SOURCES) == {}


CRASH = """
import os, signal, sys
from pathlib import Path
from smith import process
from smith.git.repository import Repository
from smith.git.sources import keep

steps = int(sys.argv[4])
original = process.start

def start(*args, **options):
    global steps
    steps -= 1
    if steps == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*args, **options)

process.start = start
keep(Repository(Path(sys.argv[1])), Repository(Path(sys.argv[2])), sys.argv[3])
"""


def test_a_kill_between_any_two_steps(source: Repository, tmp_path: Path) -> None:
    tree = source.resolve("HEAD", "tree")
    killed = 0
    for step in range(1, 40):
        data = Repository.init_bare(tmp_path / f"data{step}.git")
        argv = [sys.executable, "-c", CRASH, str(data.git_dir), str(source.git_dir), tree, str(step)]
        status = subprocess.run(argv, check=False).returncode
        assert bool(data.refs(SOURCES)) == has(data, tree)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        killed += 1
        if data.refs(SOURCES):
            git("fsck", "--strict", cwd=data.git_dir)
        assert keep(data, source, tree) == Kept(tree)
        assert has(data, tree)
    assert status == 0 and killed >= 5


def test_a_kill_at_any_instant(work: Path, tmp_path: Path) -> None:
    plant(work, world(3, files=400))
    commit_all(work)
    source = Repository.discover(work)
    tree = source.resolve("HEAD", "tree")
    chance = random.Random(4)
    for round_ in range(6):
        data = Repository.init_bare(tmp_path / f"data{round_}.git")
        argv = [sys.executable, "-c", "print(1, flush=True)\n" + CRASH]
        argv += [str(data.git_dir), str(source.git_dir), tree, "-1"]
        child = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0.1, 0.7))
        child.kill()
        child.wait()
        child.stdout.close()
        assert bool(data.refs(SOURCES)) == has(data, tree)
        assert keep(data, source, tree) == Kept(tree)
        assert has(data, tree)


def test_two_processes_keep_the_same_tree(repo: Repository, source: Repository) -> None:
    tree = source.resolve("HEAD", "tree")
    argv = [sys.executable, "-c", CRASH, str(repo.git_dir), str(source.git_dir), tree, "-1"]
    children = [subprocess.Popen(argv) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert has(repo, tree)


def test_scratch_leaves_no_trace(repo: Repository, source: Repository, tmp_path: Path) -> None:
    tree = source.resolve("HEAD", "tree")
    keep(repo, source, tree)
    before = contents(repo.git_dir)
    aside = scratch(repo, tmp_path / "odd: name/objects")
    assert read_file(aside, tree, "d0/f0") is not None
    new = write_tree(aside, [*list_tree(aside, tree), TreeEntry(FILE, "blob", write_blob(aside, b"new"), b"new")])
    assert apply(aside, tree, diff(aside, tree, new)) == new
    materialise(aside, new, tmp_path / "out")
    assert snapshot(aside, tmp_path / "out", base=new) == new
    assert contents(repo.git_dir) == before
    assert not repo.has(new) and aside.has(new)


def test_scratch_over_scratch_and_with_more_stores(repo: Repository, source: Repository, tmp_path: Path) -> None:
    first = scratch(source, tmp_path / "one:1")
    blob = write_blob(first, b"in the first")
    second = scratch(first, tmp_path / "two")
    also = scratch(repo, tmp_path / "three", also=[second])
    for view in (second, also):
        assert view.has(blob) and view.has(source.resolve("HEAD", "tree"))
    assert not scratch(repo, tmp_path / "four").has(blob)


def test_keeping_from_a_scratch_store(repo: Repository, source: Repository, tmp_path: Path) -> None:
    aside = scratch(source, tmp_path / "objects", also=[repo])
    tree = write_tree(aside, [TreeEntry(FILE, "blob", write_blob(aside, b"made here"), b"f")])
    before = fingerprint(tmp_path / "objects")
    assert keep(scratch(repo, tmp_path / "other"), aside, tree) == Kept(tree)
    assert has(repo, tree)
    assert fingerprint(tmp_path / "objects") == before


def test_scratch_in_an_unwritable_place(repo: Repository) -> None:
    with pytest.raises(Unavailable):
        scratch(repo, Path("/proc/smith/objects"))


def test_a_linked_work_tree_is_the_same_store(work: Path, source: Repository, tmp_path: Path) -> None:
    git("worktree", "add", "-q", str(tmp_path / "linked"), cwd=work)
    linked = Repository.discover(tmp_path / "linked")
    other = Repository.init_bare(tmp_path / "from.git")
    tree = write_tree(other, [TreeEntry(FILE, "blob", write_blob(other, b"x"), b"f")])
    keep(linked, other, tree)
    assert has(source, tree)
