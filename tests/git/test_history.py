"""Streamed history: what git log says, in one process, on whole and on partial repositories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from smith.errors import BadInput
from smith.git.history import changes_between, commits, first_parent, patch_ids
from smith.git.repository import Repository
from tests.mine.mine_upstreams import Upstream, kernel


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "up.git")


def _lose(repo: Repository, oid: str) -> None:
    """Unpack everything and remove one object, as in a mirror that was fetched with a filter."""
    packs = list((repo.git_dir / "objects" / "pack").glob("*.pack"))
    for pack in packs:
        data = pack.read_bytes()
        for part in pack.parent.glob(f"{pack.stem}.*"):
            part.unlink()
        repo.git("unpack-objects", "-q", input=data)
    (repo.git_dir / "objects" / oid[:2] / oid[2:]).unlink()


def test_landings_come_newest_first_with_their_words_and_changes(upstream: Upstream) -> None:
    upstream.push("Subject\n\nBody line\n\x01 and :100644 a colon\n", {"a.txt": "1\n", "README.md": None})
    newest, root = first_parent(upstream.repo, "main")
    assert newest.oid == upstream.main and newest.base == root.oid and root.base is None
    assert (newest.subject, newest.body) == ("Subject", "Body line\n\x01 and :100644 a colon")
    assert [(change.status, change.path) for change in newest.changes] == [("D", "README.md"), ("A", "a.txt")]
    assert {change.status for change in root.changes} == {"A"}
    assert newest.author == "Ann" and newest.committer == "GitHub"
    assert newest.committed == "2023-11-15T00:13:20+00:00"


def test_merges_are_compared_with_their_first_parent(upstream: Upstream) -> None:
    upstream.squash(1, "One", {"one.txt": "1"})
    upstream.merge(2, "Two", {"two.txt": "2"})
    merge = next(first_parent(upstream.repo, "main"))
    assert len(merge.parents) == 2
    assert [change.path for change in merge.changes] == ["two.txt"]


def test_commits_without_changes_do_not_shift_the_stream(upstream: Upstream) -> None:
    upstream.push("Empty (#5)", {})
    upstream.push("Full (#6)", {"a": "1"})
    assert [len(one.changes) for one in first_parent(upstream.repo, "main")] == [1, 0, 2]


def test_paths_that_are_no_text_survive(upstream: Upstream) -> None:
    odd = os.fsdecode(b'dir with blank/\xff\xfe\n\t"name.py')
    upstream.push("Odd", {odd: "1\n"})
    assert [change.path for change in next(first_parent(upstream.repo, "main")).changes] == [odd]


def test_renames_know_both_paths(upstream: Upstream) -> None:
    upstream.push("Move", {"pkg/add.py": None, "pkg/plus.py": kernel()})
    (change,) = next(first_parent(upstream.repo, "main")).changes
    assert (change.status, change.old_path, change.path, change.exact) == ("R", "pkg/add.py", "pkg/plus.py", True)
    assert change.before == "pkg/add.py"


def test_an_unknown_branch_is_bad_input(upstream: Upstream) -> None:
    with pytest.raises(BadInput, match="no such commit"):
        list(first_parent(upstream.repo, "nothing"))


def test_a_missing_blob_breaks_nothing(upstream: Upstream) -> None:
    big = "\n".join(f"line {number}" for number in range(200))
    upstream.push("Add", {"a/data.py": big})
    added = next(first_parent(upstream.repo, "main"))
    upstream.push("Move and edit", {"a/data.py": None, "b/data.py": big + "\nmore"})
    upstream.push("Other", {"c.txt": "c"})
    whole = [one.oid for one in first_parent(upstream.repo, "main")]
    _lose(upstream.repo, added.changes[0].new_oid)
    again = list(first_parent(upstream.repo, "main"))
    assert [one.oid for one in again] == whole
    assert [change.status for change in again[1].changes] == ["D", "A"]
    ids = patch_ids(upstream.repo, whole)
    assert whole[0] in ids and whole[3] in ids
    assert whole[1] not in ids and whole[2] not in ids


def test_patch_ids_are_those_of_the_change_alone(upstream: Upstream) -> None:
    head = upstream.pull(1, [("Work", {"pkg/add.py": kernel(value=5)})])
    upstream.push("Elsewhere", {"other.txt": "1"})
    landed = upstream.push("Work", {"pkg/add.py": kernel(value=5)})
    other = upstream.push("More", {"pkg/add.py": kernel(value=6)})
    ids = patch_ids(upstream.repo, [head, landed, other, head])
    assert ids[head] == ids[landed] != ids[other]


def test_merges_and_empty_commits_have_no_patch_id(upstream: Upstream) -> None:
    upstream.merge(2, "Two", {"two.txt": "2"})
    merge = upstream.main
    empty = upstream.push("Empty", {})
    assert patch_ids(upstream.repo, [merge, empty]) == {}
    assert patch_ids(upstream.repo, []) == {}


def test_many_patch_ids_in_one_stream(upstream: Upstream) -> None:
    oids = [upstream.push(f"Step {index}", {"n.txt": f"{index}\n"}) for index in range(12)]
    # More requests than a pipe holds: nothing may wait for anything.
    assert len(patch_ids(upstream.repo, oids * 400)) == 12


def test_commits_stop_at_what_is_excluded(upstream: Upstream) -> None:
    fork = upstream.main
    head = upstream.pull(1, [("A", {"a": "1"}), ("B", {"b": "1"})])
    found = list(commits(upstream.repo, [head, "1" * 40], exclude=[fork]))
    assert [one.subject for one in found] == ["B", "A"]
    assert [one.oid for one in commits(upstream.repo, [head], walk=False)] == [head]
    assert list(commits(upstream.repo, [])) == []


def test_changes_between_pairs_of_trees(upstream: Upstream) -> None:
    upstream.push("A", {"a": "1"})
    upstream.push("B", {"b\n": "1"})
    trees = [one.tree for one in first_parent(upstream.repo, "main")]
    pairs = [(trees[0], trees[0]), (trees[2], trees[0]), (trees[1], trees[0]), (trees[1], trees[1])]
    found = changes_between(upstream.repo, pairs)
    assert [[change.path for change in one] for one in found] == [[], ["a", "b\n"], ["b\n"], []]
    assert changes_between(upstream.repo, []) == []
