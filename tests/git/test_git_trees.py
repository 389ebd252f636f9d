"""Trees: listed, read, written, laid over one another; and unmoved by hostile surroundings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from git_worlds import EXEC, FILE, LINK, World, commit_all, git, plant, worlds
from hypothesis import given, settings

from smith.errors import BadInput
from smith.git.repository import EMPTY_TREE, Repository
from smith.git.trees import (
    TreeEntry,
    list_tree,
    overlay,
    read_blobs,
    read_file,
    tree_of_folder,
    write_blob,
    write_tree,
)

NOWHERE = "1" * 40


def build(repo: Repository, world: World) -> str:
    """A tree made of single blobs, without any folder."""
    return write_tree(
        repo, [TreeEntry(mode, "blob", write_blob(repo, data), path) for path, (mode, data) in world.items()]
    )


def paths(repo: Repository, tree: str) -> set[bytes]:
    return {entry.path for entry in list_tree(repo, tree)}


def test_list_tree_is_what_was_written(repo: Repository) -> None:
    world = {b"a/b/c": (EXEC, b"x"), b"caf\xe9\n": (FILE, b"y"), b"link": (LINK, b"a/b")}
    entries = list(list_tree(repo, build(repo, world)))
    assert {e.path: e.mode for e in entries} == {path: mode for path, (mode, _) in world.items()}
    assert [e.path for e in list_tree(repo, build(repo, world), recursive=False)] == [b"a", b"caf\xe9\n", b"link"]
    assert {e.kind for e in list_tree(repo, build(repo, world), trees=True)} == {"tree", "blob"}


def test_list_tree_of_nothing_and_of_no_tree(repo: Repository) -> None:
    assert list(list_tree(repo, EMPTY_TREE)) == []
    for bad in (NOWHERE, "HEAD", "--help", write_blob(repo, b"x")):
        with pytest.raises(BadInput):
            list(list_tree(repo, bad))


def test_list_tree_can_be_left_early(repo: Repository) -> None:
    tree = build(repo, {b"f%d" % i: (FILE, b"same") for i in range(3)})
    listing = list_tree(repo, tree)
    assert next(listing).path == b"f0"
    listing.close()  # type: ignore[attr-defined]


def test_read_blobs_in_order_with_gaps(repo: Repository) -> None:
    contents = [b"", b"\n", b"big" * 3_000_000, b"no final line end", b"\0\r\n"]
    oids = [write_blob(repo, data) for data in contents]
    asked = [oids[4], NOWHERE, *oids, oids[2], NOWHERE]
    known = dict(zip(oids, contents, strict=True))
    assert list(read_blobs(repo, asked)) == [(oid, known.get(oid)) for oid in asked]


def test_read_blobs_never_blocks(repo: Repository) -> None:
    """More ids than a pipe holds, each answered by more than a pipe holds."""
    oid = write_blob(repo, b"z" * 20_000)
    assert sum(len(data or b"") for _, data in read_blobs(repo, (oid for _ in range(8_000)))) == 160_000_000


def test_read_blobs_ends_cleanly_when_left_early(repo: Repository) -> None:
    before = threading.active_count()
    oid = write_blob(repo, b"z" * 100_000)
    reading = read_blobs(repo, (oid for _ in range(100_000)))
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_read_blobs_passes_on_errors_of_its_input(repo: Repository) -> None:
    with pytest.raises(BadInput):
        list(read_blobs(repo, ["HEAD"]))

    def broken() -> list[str]:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        list(read_blobs(repo, (oid for _ in range(1) for oid in broken())))


def test_read_file(repo: Repository) -> None:
    tree = build(repo, {b"a/b": (FILE, b"x\r\n"), b"caf\xe9": (FILE, b"y"), b":!x": (FILE, b"z")})
    assert read_file(repo, tree, "a/b") == b"x\r\n"
    assert read_file(repo, tree, "caf\udce9") == b"y"
    assert read_file(repo, tree, ":!x") == b"z"
    for absent in ("a", "a/c", "", "/a/b", "./a/b", "../a", "a/b/"):
        assert read_file(repo, tree, absent) is None
    with pytest.raises(BadInput):
        read_file(repo, NOWHERE, "a/b")


def test_write_tree_refuses_what_is_unsafe_or_absent(repo: Repository) -> None:
    oid = write_blob(repo, b"x")
    for path in (b"../x", b"/x", b"a//b", b".git/config", b"a/.GIT/x", b"", b"a/./b", b".."):
        with pytest.raises(BadInput, match="unsafe"):
            write_tree(repo, [TreeEntry(FILE, "blob", oid, path)])
    with pytest.raises(BadInput, match=f"a b: its object {NOWHERE}"):
        write_tree(repo, [TreeEntry(FILE, "blob", NOWHERE, b"a b")])
    assert write_tree(repo, [TreeEntry(FILE, "blob", NOWHERE, b"a b")], missing_ok=True)


def test_write_tree_takes_submodules(repo: Repository) -> None:
    tree = write_tree(repo, [TreeEntry("160000", "commit", NOWHERE, b"third/party")])
    assert list(list_tree(repo, tree)) == [TreeEntry("160000", "commit", NOWHERE, b"third/party")]
    assert write_tree(repo, []) == EMPTY_TREE


def test_overlay(repo: Repository) -> None:
    below = build(repo, {b"a": (FILE, b"1"), b"d/x": (FILE, b"2"), b"d/y": (FILE, b"3"), b"e/z": (FILE, b"4")})
    over = build(repo, {b"a/deep": (EXEC, b"5"), b"d": (LINK, b"e"), b"new": (FILE, b"6")})
    result = overlay(repo, below, over, removed=["e/z", "never/there"])
    assert paths(repo, result) == {b"a/deep", b"d", b"new"}
    assert paths(repo, overlay(repo, below, EMPTY_TREE, removed=["d/"])) == {b"a", b"e/z"}
    assert overlay(repo, below, EMPTY_TREE) == below


def test_overlay_keeps_what_a_partial_mirror_lacks(repo: Repository) -> None:
    partial = write_tree(repo, [TreeEntry(FILE, "blob", NOWHERE, b"huge.bin")], missing_ok=True)
    over = build(repo, {b"t": (FILE, b"x")})
    assert paths(repo, overlay(repo, partial, over)) == {b"huge.bin", b"t"}


def test_nothing_around_the_repository_matters(repo: Repository, turn_hostile: Callable[[Repository], None]) -> None:
    world = {b"crlf": (FILE, b"a\r\n$Id$\r\n"), b".gitattributes": (FILE, b"* text eol=crlf ident filter=evil\n")}
    friendly = build(repo, world)
    turn_hostile(repo)
    assert build(repo, world) == friendly
    assert read_file(repo, friendly, "crlf") == b"a\r\n$Id$\r\n"
    assert overlay(repo, friendly, friendly) == friendly


def test_replaced_objects_are_not_followed(work: Path) -> None:
    (work / "f").write_text("true\n")
    commit_all(work)
    (work / "f").write_text("false\n")
    blob = git("hash-object", "-w", "f", cwd=work)
    tree = git("rev-parse", "HEAD^{tree}", cwd=work)
    git("replace", git("rev-parse", "HEAD:f", cwd=work), blob, cwd=work)
    git("replace", tree, git("mktree", cwd=work), cwd=work)
    assert read_file(Repository.discover(work), tree, "f") == b"true\n"


@settings(max_examples=20, deadline=None)
@given(world=worlds)
def test_tree_of_folder_is_what_git_commits(
    shared: Repository, tmp_path_factory: pytest.TempPathFactory, world: World
) -> None:
    folder = plant(tmp_path_factory.mktemp("f"), world)
    ours = tree_of_folder(shared, folder)
    git("init", "-q", cwd=folder)
    git("-c", "core.protectNTFS=false", "add", "-A", "-f", cwd=folder)
    assert git("-c", "core.protectNTFS=false", "write-tree", cwd=folder) == ours
    assert tree_of_folder(shared, folder) == ours  # a .git of its own changes nothing


def test_tree_of_folder_inside_a_repository(work: Path) -> None:
    world = {
        b"x.pyc": (FILE, b"1"),
        b"__pycache__/y": (FILE, b"2"),
        b".gitignore": (FILE, b"*\n"),
        b"run": (EXEC, b"3"),
    }
    plant(work / "tasks/one", world)
    commit_all(work)
    assert tree_of_folder(Repository.discover(work), work / "tasks/one") == git("rev-parse", "HEAD:tasks/one", cwd=work)
