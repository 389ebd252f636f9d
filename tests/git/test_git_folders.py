"""Trees written into folders and read back."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from git_worlds import EXEC, FILE, LINK, World, git, harvest, plant, worlds
from hypothesis import given, settings

from smith.errors import BadInput, PatchError, Unavailable
from smith.git.repository import EMPTY_TREE, Repository
from smith.git.trees import (
    MTIME_NS,
    TreeEntry,
    list_tree,
    materialise,
    snapshot,
    tree_of_folder,
    write_blob,
    write_tree,
)
from smith.paths import remove_tree

NOWHERE = "1" * 40
WORLD: World = {
    b"plain": (FILE, b"x\n"),
    b"crlf.txt": (FILE, b"a\r\nb\n$Id$ $Format:%H$\n"),
    b"bin/run": (EXEC, b"#!/bin/sh\n"),
    b"bin/\xff\n": (FILE, b"\0\1\2"),
    b"link": (LINK, b"bin/run"),
    b"out": (LINK, b"/etc/passwd"),
    b".gitattributes": (FILE, b"* text=auto eol=crlf ident filter=evil export-subst working-tree-encoding=UTF-16\n"),
    b"build/kept.o": (FILE, b"tracked although ignored"),
    b".gitignore": (FILE, b"build/\n*.log\n!keep.log\n"),
}


def tree_of(repo: Repository, world: World, place: Path) -> str:
    return tree_of_folder(repo, plant(place, world))


def raw_tree(repo: Repository, *entries: tuple[bytes, bytes, str]) -> str:
    """A tree object made by hand, as damaged as one likes."""
    data = b"".join(mode + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)
    return repo.text("hash-object", "-w", "-t", "tree", "--literally", "--stdin", input=data)


def test_materialise_is_exact(repo: Repository, tmp_path: Path, turn_hostile: Callable[[Repository], None]) -> None:
    tree = tree_of(repo, WORLD, tmp_path / "in")
    turn_hostile(repo)
    umask = os.umask(0o077)
    try:
        assert materialise(repo, tree, tmp_path / "new/out") == []
    finally:
        os.umask(umask)
    assert harvest(tmp_path / "new/out") == WORLD
    for here, folders, files in os.walk(tmp_path / "new/out"):
        assert os.stat(here).st_mode & 0o777 == 0o755
        for name in (*folders, *files):
            assert os.lstat(os.path.join(here, name)).st_mtime_ns == MTIME_NS
    assert (tmp_path / "new/out/plain").stat().st_mode & 0o777 == 0o644
    assert snapshot(repo, tmp_path / "new/out", base=tree) == tree


def test_materialise_into_an_empty_folder_only(repo: Repository, tmp_path: Path) -> None:
    tree = tree_of(repo, WORLD, tmp_path / "in")
    (tmp_path / "out").mkdir()
    materialise(repo, tree, tmp_path / "out")
    with pytest.raises(BadInput, match="not empty"):
        materialise(repo, tree, tmp_path / "out")
    assert harvest(tmp_path / "out") == WORLD
    with pytest.raises(BadInput):
        materialise(repo, tree, tmp_path / "out/plain")
    materialise(repo, EMPTY_TREE, tmp_path / "nothing")
    assert list((tmp_path / "nothing").iterdir()) == []


def test_submodules_are_empty_folders_and_come_back(repo: Repository, tmp_path: Path) -> None:
    link = TreeEntry("160000", "commit", NOWHERE, b"third/party")
    tree = write_tree(repo, [link, TreeEntry(FILE, "blob", write_blob(repo, b"x"), b"f")])
    out = tmp_path / "out"
    materialise(repo, tree, out)
    assert list((out / "third/party").iterdir()) == []
    assert snapshot(repo, out, base=tree) == tree
    (out / "third/party/.git").write_text("gitdir: /elsewhere")
    assert snapshot(repo, out, base=tree) == tree
    (out / "third/party/code.py").write_text("x")
    kinds = {e.path: e.kind for e in list_tree(repo, snapshot(repo, out, base=tree))}
    assert kinds == {b"f": "blob", b"third/party/code.py": "blob"}


def test_missing_contents(repo: Repository, tmp_path: Path) -> None:
    here, gone = write_blob(repo, b"x"), TreeEntry(FILE, "blob", NOWHERE, b"big/one.bin")
    tree = write_tree(repo, [TreeEntry(FILE, "blob", here, b"small"), gone], missing_ok=True)
    with pytest.raises(BadInput, match=r"big/one\.bin"):
        materialise(repo, tree, tmp_path / "fail")
    assert list((tmp_path / "fail").iterdir()) == []
    assert materialise(repo, tree, tmp_path / "skip", missing="skip") == ["big/one.bin"]
    assert harvest(tmp_path / "skip") == {b"small": (FILE, b"x")}


@pytest.mark.parametrize("name", [b"..", b".git", b".GiT", b".", b"a/../../b", b"/abs", b"a//b"])
def test_unsafe_trees_are_refused(repo: Repository, tmp_path: Path, name: bytes) -> None:
    tree = raw_tree(repo, (b"100644", name, write_blob(repo, b"x")))
    outer = raw_tree(repo, (b"40000", b"sub", tree))
    for bad in (tree, outer):
        with pytest.raises(BadInput, match="unsafe"):
            materialise(repo, bad, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_never_leads_a_write_outside(repo: Repository, tmp_path: Path) -> None:
    """A damaged tree holds a link and a folder of the same name."""
    (tmp_path / "outside").mkdir()
    blob = write_blob(repo, b"x")
    inner = raw_tree(repo, (b"100644", b"f", blob))
    target = write_blob(repo, os.fsencode(tmp_path / "outside"))
    for entries in ([(b"120000", b"d", target), (b"40000", b"d", inner)], [(b"100644", b"d", blob)] * 2):
        with pytest.raises(BadInput, match="collides"):
            materialise(repo, raw_tree(repo, *entries), tmp_path / "out")
        assert list((tmp_path / "outside").iterdir()) == []
        assert list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_is_unavailable(repo: Repository, tmp_path: Path) -> None:
    tree = tree_of(repo, {b"big": (FILE, b"x" * 300_000)}, tmp_path / "in")
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from smith.errors import Unavailable; from smith.git.repository import Repository\n"
        "from smith.git.trees import materialise\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: materialise(Repository(Path(sys.argv[1])), sys.argv[2], Path(sys.argv[3]))\n"
        "except Unavailable as error: print(error)\n"
    )
    argv = [sys.executable, "-c", code, str(repo.git_dir), tree, str(tmp_path / "out")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "cannot be written: File too large" in done.stdout
    assert list((tmp_path / "out").iterdir()) == []


def test_an_unwritable_place_is_unavailable(repo: Repository) -> None:
    with pytest.raises(Unavailable):
        materialise(repo, EMPTY_TREE, Path("/proc/smith/out"))


@settings(max_examples=20, deadline=None)
@given(world=worlds)
def test_materialise_and_snapshot_are_inverse(
    shared: Repository, tmp_path_factory: pytest.TempPathFactory, world: World
) -> None:
    place = tmp_path_factory.mktemp("w")
    tree = tree_of_folder(shared, plant(place / "in", world))
    materialise(shared, tree, place / "out")
    assert harvest(place / "out") == world
    assert snapshot(shared, place / "out", base=tree) == tree
    assert tree_of_folder(shared, place / "out") == tree


def test_snapshot_sees_every_change(repo: Repository, tmp_path: Path) -> None:
    base = tree_of(repo, WORLD, tmp_path / "in")
    out = tmp_path / "out"
    materialise(repo, base, out)
    (out / "plain").write_bytes(b"y\n")  # same size
    os.utime(out / "plain", ns=(MTIME_NS, MTIME_NS))  # and same time
    (out / "bin/run").chmod(0o644)
    (out / "out").unlink()
    (out / "crlf.txt").unlink()
    (out / "crlf.txt").mkdir()
    (out / "crlf.txt/now").write_bytes(b"a folder\r\n")
    (out / "empty").mkdir()
    (out / "build/kept.o").write_bytes(b"changed")
    now = tree_of_folder(repo, out)
    assert snapshot(repo, out, base=base) == now
    seen = {e.path: e.mode for e in list_tree(repo, now)}
    assert seen[b"bin/run"] == FILE and b"out" not in seen and b"crlf.txt/now" in seen and b"empty" not in seen


def test_snapshot_ignores_by_the_rules_of_its_base(repo: Repository, tmp_path: Path) -> None:
    base = tree_of(repo, WORLD | {b"sub/.gitignore": (FILE, b"/only-here\n")}, tmp_path / "in")
    out = tmp_path / "out"
    materialise(repo, base, out)
    (out / ".gitignore").write_text("*\n")  # new rules say that nothing counts
    (out / "sub/.gitignore").unlink()
    extra: World = {
        b"build/x.o": (FILE, b"1"),
        b"deep/build/y": (FILE, b"1"),
        b"a.log": (FILE, b"1"),
        b"sub/only-here": (FILE, b"1"),
        b"pkg/__pycache__/m.cpython-311.pyc": (FILE, b"1"),
        b"stray.pyc": (FILE, b"1"),
    }
    new: World = {
        b"new.py": (FILE, b"2"),
        b"keep.log": (FILE, b"2"),
        b"only-here": (FILE, b"2"),
        b":(glob)*": (FILE, b"2"),
        b"-x": (FILE, b"2"),
        b"built": (LINK, b"build"),
    }
    plant(out, extra | new)
    counted = {e.path for e in list_tree(repo, snapshot(repo, out, base=base))}
    assert counted == WORLD.keys() | new.keys()


def test_snapshot_keeps_tracked_caches(repo: Repository, tmp_path: Path) -> None:
    world: World = {b"p/__pycache__/kept.pyc": (FILE, b"1"), b"m.pyc": (FILE, b"2")}
    base = tree_of(repo, world, tmp_path / "in")
    out = tmp_path / "out"
    materialise(repo, base, out)
    plant(out, {b"p/__pycache__/new.pyc": (FILE, b"3")})
    assert snapshot(repo, out, base=base) == base


def test_snapshot_enters_no_git_folder(repo: Repository, tmp_path: Path) -> None:
    base = tree_of(repo, WORLD, tmp_path / "in")
    out = tmp_path / "out"
    materialise(repo, base, out)
    git("init", "-q", cwd=out)
    (out / ".git/info/exclude").write_text("*\n")
    git("config", "core.fileMode", "false", cwd=out)
    (out / "nested").mkdir()
    git("init", "-q", cwd=out / "nested")
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=out / "nested")
    (out / "nested/code.py").write_text("x")
    (out / "bin/.GIT").write_text("not entered either")
    found = {e.path: e.kind for e in list_tree(repo, snapshot(repo, out, base=base))}
    assert found == dict.fromkeys([*WORLD, b"nested/code.py"], "blob")


def test_snapshot_in_hostile_surroundings(
    repo: Repository, tmp_path: Path, turn_hostile: Callable[[Repository], None]
) -> None:
    base = tree_of(repo, WORLD, tmp_path / "in")
    materialise(repo, base, tmp_path / "out")
    plant(tmp_path / "out", {b"new": (FILE, b"$Id$\r\n"), b"x.log": (FILE, b"")})
    friendly = snapshot(repo, tmp_path / "out", base=base)
    turn_hostile(repo)
    assert snapshot(repo, tmp_path / "out", base=base) == friendly
    assert tree_of_folder(repo, tmp_path / "in") == base


@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_special_files_are_refused(repo: Repository, tmp_path: Path, kind: str) -> None:
    folder = plant(tmp_path / "w", {b"build/x": (FILE, b"1"), b".gitignore": (FILE, b"build/\n")})
    base = tree_of(repo, {b".gitignore": (FILE, b"build/\n")}, tmp_path / "in")

    def special(name: str) -> None:
        if kind == "fifo":
            os.mkfifo(folder / name)
        else:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(os.path.relpath(folder / name))

    special("build/ignored")
    assert snapshot(repo, folder, base=base) == base
    special("counted")
    with pytest.raises(PatchError) as caught:
        snapshot(repo, folder, base=base)
    assert (caught.value.rule, caught.value.path) == ("special_file", "counted")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_named(repo: Repository, tmp_path: Path) -> None:
    folder = plant(tmp_path / "w", {b"d/x": (FILE, b"1")})
    (folder / "d/x").chmod(0)
    with pytest.raises(PatchError) as caught:
        snapshot(repo, folder)
    assert (caught.value.rule, caught.value.path) == ("unreadable", "d/x")


def test_deep_folders(repo: Repository, tmp_path: Path) -> None:
    deep = b"/".join([b"d"] * 1010) + b"/f"
    tree = write_tree(repo, [TreeEntry(FILE, "blob", write_blob(repo, b"1"), deep)])
    materialise(repo, tree, tmp_path / "out")
    assert snapshot(repo, tmp_path / "out", base=tree) == tree
    here = os.open(tmp_path / "out", os.O_RDONLY)
    for _ in range(18):
        os.mkdir("x" * 250, dir_fd=here)
        below = os.open("x" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    with pytest.raises(PatchError) as caught:
        snapshot(repo, tmp_path / "out", base=tree)
    assert caught.value.rule == "unreadable"
    remove_tree(tmp_path / "out")  # pytest itself cannot


def test_snapshot_of_no_folder(repo: Repository, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        snapshot(repo, tmp_path / "absent")


def test_two_thousand_files_are_quick(repo: Repository, tmp_path: Path) -> None:
    folder = plant(tmp_path / "w", {b"d%d/f%d" % (i % 50, i): (FILE, b"%d\n" % i * 200) for i in range(2_000)})
    tree = tree_of_folder(repo, folder)
    began = time.monotonic()
    (folder / "d1/new").write_text("x")
    assert snapshot(repo, folder, base=tree) != tree
    assert time.monotonic() - began < 5
