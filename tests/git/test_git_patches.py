"""Patches: exact both ways, deterministic, and never outside the tree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from git_worlds import EXEC, FILE, LINK, World, changed_worlds, plant
from hypothesis import given, settings

from smith.errors import BadInput, PatchError
from smith.git.patches import Change, apply, changes, diff
from smith.git.repository import EMPTY_TREE, Repository
from smith.git.trees import TreeEntry, read_file, tree_of_folder, write_blob, write_tree

NOWHERE = "1" * 40
TEXT = b"".join(b"line %d\n" % i for i in range(40))
OLD: World = {
    b"kernels/a.py": (FILE, TEXT),
    b"kernels/b.py": (FILE, b"def f():\r\n    pass\r\n"),
    b"run.sh": (FILE, b"#!/bin/sh\n"),
    b"data.bin": (FILE, bytes(range(256)) * 4),
    b"link": (LINK, b"run.sh"),
    b"caf\xe9 x": (FILE, b"odd\n"),
}
NEW: World = {
    b"kernels/moved.py": (FILE, TEXT.replace(b"line 7\n", b"line seven\n")),
    b"kernels/b.py": (FILE, b"def f():\r\n    return 1\r\n"),
    b"run.sh": (EXEC, b"#!/bin/sh\n"),
    b"data.bin": (FILE, bytes(range(256)) * 3 + b"\0"),
    b"link": (FILE, b"a file now"),
    b"caf\xe9 x": (FILE, b"odd"),
}


@pytest.fixture
def trees(repo: Repository, tmp_path: Path) -> tuple[str, str]:
    return tuple(tree_of_folder(repo, plant(tmp_path / n, w)) for n, w in (("old", OLD), ("new", NEW)))  # type: ignore[return-value]


def one(repo: Repository, path: bytes, data: bytes, mode: str = FILE) -> str:
    return write_tree(repo, [TreeEntry(mode, "blob", write_blob(repo, data), path)])


def test_round_trip(repo: Repository, trees: tuple[str, str]) -> None:
    old, new = trees
    patch = diff(repo, old, new)
    assert b"rename to kernels/moved.py" in patch and b"GIT binary patch" in patch and b"new mode 100755" in patch
    assert apply(repo, old, patch) == new
    assert apply(repo, new, diff(repo, new, old)) == old
    assert diff(repo, old, old) == b""


@settings(max_examples=40, deadline=None)
@given(pair=changed_worlds())
def test_diff_and_apply_are_inverse(
    shared: Repository, tmp_path_factory: pytest.TempPathFactory, pair: tuple[World, World]
) -> None:
    place = tmp_path_factory.mktemp("p")
    old, new = (tree_of_folder(shared, plant(place / str(i), world)) for i, world in enumerate(pair))
    patch = diff(shared, old, new)
    assert apply(shared, old, patch) == new
    assert (patch == b"") == (old == new)
    touched = {path for change in changes(shared, old, new) for path in (change.path, change.old_path) if path}
    sides = [{p.decode("utf-8", "surrogateescape"): item for p, item in world.items()} for world in pair]
    differing = {path for path in {*sides[0], *sides[1]} if sides[0].get(path) != sides[1].get(path)}
    assert touched == differing


def test_hostile_surroundings_change_no_byte(
    repo: Repository, trees: tuple[str, str], turn_hostile: Callable[[Repository], None]
) -> None:
    old, new = trees
    attributed = one(repo, b".gitattributes", b"* -diff text eol=crlf filter=evil whitespace=trailing-space\n")
    friendly, listed = diff(repo, old, new), changes(repo, old, new)
    noted = diff(repo, EMPTY_TREE, attributed)
    turn_hostile(repo)
    assert diff(repo, old, new) == friendly
    assert changes(repo, old, new) == listed
    assert apply(repo, old, friendly) == new
    assert apply(repo, attributed, diff(repo, EMPTY_TREE, old)) != old
    assert apply(repo, EMPTY_TREE, noted) == attributed


def test_changes(repo: Repository, trees: tuple[str, str]) -> None:
    found = {c.path: c for c in changes(repo, *trees)}
    assert {path: c.status for path, c in found.items()} == {
        "kernels/moved.py": "R",
        "kernels/b.py": "M",
        "run.sh": "M",
        "data.bin": "M",
        "link": "T",
        "caf\udce9 x": "M",
    }
    assert found["kernels/moved.py"].old_path == "kernels/a.py"
    assert found["run.sh"].old_oid == found["run.sh"].new_oid
    blob = write_blob(repo, b"x")
    added = changes(repo, EMPTY_TREE, one(repo, b"x", b"x"))
    assert added == [Change("A", "000000", FILE, "0" * 40, blob, "x")]


def test_diff_of_some_paths(repo: Repository, trees: tuple[str, str]) -> None:
    old, new = trees
    assert diff(repo, old, new, []) == b""
    moved = diff(repo, old, new, ["kernels/moved.py"])
    assert b"new file mode" in moved and b"rename" not in moved
    both = diff(repo, old, new, ["kernels/moved.py", "kernels/a.py"])
    assert b"rename from kernels/a.py" in both
    assert diff(repo, old, new, ["kernels"]).count(b"diff --git") == 2
    assert diff(repo, old, new, ["caf\udce9 x"]).count(b"diff --git") == 1
    assert diff(repo, old, new, ["*", ":(top)run.sh", "kern*"]) == b""
    parts = [diff(repo, old, new, [path]) for path in ("kernels", "run.sh", "data.bin", "link", "caf\udce9 x")]
    assert apply(repo, old, b"".join(parts)) == new


def test_submodules(repo: Repository) -> None:
    one_, two = (write_tree(repo, [TreeEntry("160000", "commit", c * 40, b"sub")]) for c in "12")
    assert apply(repo, one_, diff(repo, one_, two)) == two
    assert apply(repo, one_, diff(repo, one_, EMPTY_TREE)) == EMPTY_TREE


def test_contents_that_a_partial_mirror_lacks_stay_missing(repo: Repository) -> None:
    lost = TreeEntry(FILE, "blob", NOWHERE, b"lost")
    old, new = (
        write_tree(repo, [lost, TreeEntry(FILE, "blob", write_blob(repo, data), b"f")], missing_ok=True)
        for data in (b"1\n", b"2\n")
    )
    assert apply(repo, old, diff(repo, old, new)) == new


def test_an_empty_patch(repo: Repository, trees: tuple[str, str]) -> None:
    assert apply(repo, trees[0], b"") == apply(repo, trees[0], b" \n\n") == trees[0]
    with pytest.raises(PatchError) as caught:
        apply(repo, trees[0], b"\n", allow_empty=False)
    assert caught.value.rule == "empty"


def new_file(path: str, mode: str = "100644", line: str = "x") -> bytes:
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n"
    ).encode()


@pytest.mark.parametrize(
    "path",
    ["../up", "a/../../up", ".git/config", ".GIT/hooks/x", "sub/.git/config", "/etc/passwd", "link/inside"],
)
def test_patches_that_leave_the_tree(repo: Repository, trees: tuple[str, str], path: str) -> None:
    with pytest.raises(PatchError) as caught:
        apply(repo, trees[0], new_file(path))
    assert caught.value.rule == "escapes_tree"
    assert caught.value.path
    assert "\n" not in str(caught.value)


def test_a_link_made_by_the_patch_itself_is_seen_too(repo: Repository, trees: tuple[str, str]) -> None:
    patch = new_file("door", "120000", "/tmp") + new_file("door/file")
    with pytest.raises(PatchError) as caught:
        apply(repo, trees[0], patch)
    assert caught.value.rule in ("escapes_tree", "does_not_apply")


def test_renames_out_of_the_tree(repo: Repository, trees: tuple[str, str]) -> None:
    for source, target in (("run.sh", "../run.sh"), ("../run.sh", "x"), ("run.sh", ".git/x")):
        patch = f"diff --git a/{source} b/{target}\nsimilarity index 100%\nrename from {source}\nrename to {target}\n"
        with pytest.raises(PatchError) as caught:
            apply(repo, trees[0], patch.encode())
        assert caught.value.rule == "escapes_tree"


def test_gitmodules_may_be_patched(repo: Repository, trees: tuple[str, str]) -> None:
    assert read_file(repo, apply(repo, trees[0], new_file(".gitmodules")), ".gitmodules") == b"x\n"


@pytest.mark.parametrize(
    "patch",
    [
        b"no patch at all\n",
        b"diff --git a/run.sh b/run.sh\n--- a/run.sh\n+++ b/run.sh\n@@ -1,9 +1 @@\n-#!/bin/sh\n",
        b"@@ -1 +1 @@\n-a\n+b\n",
        b"\0\1\2\3" * 100,
        b"diff --git a/data.bin b/data.bin\nindex 1..2 100644\nGIT binary patch\nliteral 5\nnonsense!\n",
    ],
)
def test_malformed_patches(repo: Repository, trees: tuple[str, str], patch: bytes) -> None:
    with pytest.raises(PatchError) as caught:
        apply(repo, trees[0], patch)
    assert caught.value.rule == "malformed"


def test_patches_that_do_not_apply(repo: Repository, trees: tuple[str, str]) -> None:
    old, new = trees
    for start, patch, path in (
        (new, diff(repo, old, new, ["kernels/b.py"]), "kernels/b.py"),
        (EMPTY_TREE, diff(repo, old, new, ["run.sh"]), "run.sh"),
        (old, new_file("run.sh"), "run.sh"),
        (new, diff(repo, old, new, ["data.bin"]), "data.bin"),
    ):
        with pytest.raises(PatchError) as caught:
            apply(repo, start, patch)
        assert (caught.value.rule, caught.value.path) == ("does_not_apply", path)


def test_a_link_that_becomes_a_folder(repo: Repository, tmp_path: Path) -> None:
    worlds: list[World] = [
        {b"b": (LINK, b"x")},
        {b"b/a": (LINK, b"x")},
        {b"c": (LINK, b"x"), b"b/a": (FILE, TEXT)},
    ]
    made = [tree_of_folder(repo, plant(tmp_path / str(i), world)) for i, world in enumerate(worlds)]
    for old in made:
        for new in made:
            assert apply(repo, old, diff(repo, old, new)) == new


def test_an_empty_file_below_a_folder_that_ends_in_a_space(repo: Repository) -> None:
    tree = one(repo, b"end /a b/end /c", b"")
    assert apply(repo, EMPTY_TREE, diff(repo, EMPTY_TREE, tree)) == tree
    assert apply(repo, tree, diff(repo, tree, one(repo, b"end /a b/end /c", b"", EXEC))) != tree


def test_a_patch_is_applied_whole_or_not_at_all(repo: Repository, trees: tuple[str, str]) -> None:
    with pytest.raises(PatchError):
        apply(repo, trees[0], new_file("fine") + diff(repo, trees[0], trees[1]) + new_file("run.sh"))


def test_no_such_tree(repo: Repository) -> None:
    with pytest.raises(BadInput):
        apply(repo, NOWHERE, new_file("x"))
    with pytest.raises(BadInput):
        changes(repo, "HEAD", EMPTY_TREE)


def test_line_ends_are_nobodys_business(repo: Repository) -> None:
    old, new = one(repo, b"f", b"a\r\nb\r\nc\r\n"), one(repo, b"f", b"a\r\nb\nc \t\n")
    assert apply(repo, old, diff(repo, old, new)) == new
    assert apply(repo, new, diff(repo, new, old)) == old
