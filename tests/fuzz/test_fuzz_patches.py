"""Patches that were bent: a tree with safe paths or a typed refusal, and never anything else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smith.errors import PatchError
from smith.git.objects import unsafe
from smith.git.patches import apply, changes, diff
from smith.git.repository import Repository
from smith.git.trees import TreeEntry, list_tree, overlay, write_blob, write_tree

SOME = settings.get_profile(settings.get_current_profile_name()).max_examples // 4
"""Each example runs git several times."""
RULES = {"malformed", "escapes_tree", "does_not_apply"}
NASTY = [
    b"../x", b"/etc/passwd", b"a/../../x", b".git/config", b".GIT/hooks/x", b"a//b", b"a/.", b"link/x", b"\xff\xfe",
    b"",
]  # fmt: skip


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository.init_bare(tmp_path_factory.mktemp("fuzz") / "repo.git")


def tree_of(repo: Repository, files: dict[bytes, bytes]) -> str:
    return write_tree(repo, [TreeEntry("100644", "blob", write_blob(repo, data), path) for path, data in files.items()])


@pytest.fixture(scope="module")
def sides(repo: Repository) -> tuple[str, bytes]:
    """A tree, and an honest patch on it."""
    old = {b"a/one.py": b"".join(b"line %d\n" % n for n in range(30)), b"a/two.py": b"x\n", b"gone": b"y\n"}
    new = {b"a/one.py": old[b"a/one.py"].replace(b"line 7", b"seven"), b"a/new.py": b"new\n", b"bin": bytes(range(256))}
    one, other = tree_of(repo, old), tree_of(repo, new)
    return one, diff(repo, one, other)


def check(repo: Repository, tree: str, patch: bytes) -> None:
    try:
        done = apply(repo, tree, patch)
    except PatchError as error:
        assert error.rule in RULES
        return
    for change in changes(repo, tree, done):
        assert not unsafe(change.path.encode("utf-8", "surrogateescape"))
        assert change.new_mode in ("000000", "100644", "100755", "120000", "160000")


@settings(max_examples=SOME)
@given(data=st.data())
def test_a_bent_patch_is_a_safe_tree_or_a_typed_refusal(
    repo: Repository, sides: tuple[str, bytes], data: st.DataObject
) -> None:
    tree, patch = sides
    lines = patch.split(b"\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "double", "swap", "path", "mode", "bytes"])):
            case "drop":
                del lines[at : at + 1]
            case "double":
                lines.insert(at, lines[at])
            case "swap":
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "path":
                name = data.draw(st.sampled_from(NASTY))
                lines[at] = re.sub(rb"(?<=[ab]/)\S+", lambda _, name=name: name, lines[at])  # type: ignore[misc]
            case "mode":
                lines[at] = lines[at].replace(b"100644", data.draw(st.sampled_from([b"120000", b"160000", b"000000"])))
            case _:
                lines[at] = data.draw(st.binary(max_size=40))
        lines = lines or [b""]
    check(repo, tree, b"\n".join(lines))


@settings(max_examples=SOME)
@given(text=st.binary(max_size=300))
def test_any_bytes_are_a_typed_refusal(repo: Repository, sides: tuple[str, bytes], text: bytes) -> None:
    check(repo, sides[0], text)


@pytest.mark.parametrize("name", NASTY[:5])
def test_a_new_file_at_a_nasty_path_is_refused(repo: Repository, sides: tuple[str, bytes], name: bytes) -> None:
    patch = b"--- /dev/null\n+++ b/" + name + b"\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(PatchError) as caught:
        apply(repo, sides[0], patch)
    assert caught.value.rule in RULES


PARTS = st.sampled_from([b"a", b"b", b"tests", b"x.py"])
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(b"/".join)


def consistent(paths: set[bytes]) -> dict[bytes, bytes]:
    """Those of ``paths`` below none of which another lies, each with its name as content."""
    return {p: p for p in sorted(paths) if not any(other.startswith(p + b"/") for other in paths)}


@settings(max_examples=SOME)
@given(below=st.sets(PATHS, max_size=8), over=st.sets(PATHS, max_size=6), modes=st.sampled_from(["100644", "120000"]))
def test_what_is_laid_over_is_there_whatever_stood_in_its_way(
    repo: Repository, below: set[bytes], over: set[bytes], modes: str
) -> None:
    """Files, folders and links in the way of hidden tests give way to them, and nothing else is lost."""
    under = [TreeEntry(modes, "blob", write_blob(repo, b"theirs"), path) for path in consistent(below)]
    tree, hidden = write_tree(repo, under), tree_of(repo, consistent(over))
    found = {e.path: (e.mode, e.oid) for e in list_tree(repo, overlay(repo, tree, hidden))}
    for entry in list_tree(repo, hidden):
        assert found.pop(entry.path) == (entry.mode, entry.oid)
    laid = consistent(over)
    for entry in under:
        in_the_way = any(
            p == entry.path or p.startswith(entry.path + b"/") or entry.path.startswith(p + b"/") for p in laid
        )
        assert in_the_way or found.pop(entry.path) == (entry.mode, entry.oid)
    assert not found
