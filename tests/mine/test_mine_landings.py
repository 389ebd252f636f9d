"""Landings in the words of other forges, and those whose words have lost the number."""

from __future__ import annotations

from pathlib import Path

import pytest

from smith.mine import mine
from smith.mine.discover import Merged, discover
from smith.mine.survey import survey
from smith.mine.verify import verify_all
from smith.records.candidate import Flag
from smith.records.pull_request import Evidence, MergeForm, Verified
from tests.mine.mine_upstreams import Upstream, kernel


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "up.git")


def found(upstream: Upstream, branch: str = "main") -> dict[int, Merged]:
    return {one.number: one for one in discover(upstream.repo, branch).merged}


def land(upstream: Upstream, message: str, head: str, changes: dict[str, str]) -> str:
    oid = upstream.commit(message, changes, [upstream.main, head])
    upstream.main = oid
    upstream.ref("refs/heads/main", oid)
    return oid


@pytest.mark.parametrize(
    ("ref", "message", "title"),
    [
        (
            "refs/merge-requests/7/head",
            "Merge branch 'fix' into 'main'\n\nFix the tail\n\nSee merge request group/sub/project!7\n",
            "Fix the tail",
        ),
        ("refs/pull/7/head", "Merge pull request 'Fix the tail' (#7) from ann/fix into main\n", "Fix the tail"),
        ("refs/pull/7/head", "Merged in ann/fix (pull request #7)\n\nFix the tail\n", "Fix the tail"),
        ("refs/pull/7/head", "Merge pull request #7 from ann/fix\n\nFix the tail\n", "Fix the tail"),
    ],
)
def test_a_merge_in_the_words_of_each_forge(upstream: Upstream, ref: str, message: str, title: str) -> None:
    base = upstream.main
    head = upstream.commit("work", {"a": "1\n"}, [upstream.main])
    upstream.ref(ref, head)
    landed = land(upstream, message, head, {"a": "1\n"})
    record = found(upstream)[7].pull_request
    assert (record.form, record.evidence, record.title) == (MergeForm.MERGE, Evidence.MERGE_SUBJECT, title)
    assert (record.base, record.merged, record.head) == (base, landed, head)


@pytest.mark.parametrize("subject", ["Fix the tail (!7)", "Merged PR 7: Fix the tail"])
def test_a_squash_in_the_words_of_other_forges(upstream: Upstream, subject: str) -> None:
    upstream.push(subject, {"a": "1\n"})
    record = found(upstream)[7].pull_request
    assert (record.form, record.title) == (MergeForm.SQUASH, "Fix the tail")


def test_a_merge_that_states_no_number_is_told_by_its_head(upstream: Upstream) -> None:
    head = upstream.pull(4, [("work", {"a": "1\n"})])
    upstream.ref("refs/pull/3/head", head)  # closed, and taken over by 4
    base = upstream.main
    landed = land(upstream, "Merge branch 'work'", head, {"a": "1\n"})
    record = found(upstream)[4].pull_request
    assert set(found(upstream)) == {4}
    assert (record.form, record.evidence) == (MergeForm.MERGE, Evidence.MERGED_HEAD)
    assert (record.base, record.merged) == (base, landed)


def test_an_octopus_lands_each_of_its_heads(upstream: Upstream) -> None:
    fork = upstream.main
    one = upstream.pull(1, [("one", {"a": "1\n"})], base=fork)
    two = upstream.pull(2, [("two", {"b": "1\n"})], base=fork)
    oid = upstream.commit("Merge both", {"a": "1\n", "b": "1\n"}, [fork, one, two])
    upstream.main = oid
    upstream.ref("refs/heads/main", oid)
    assert {n: m.pull_request.merged for n, m in found(upstream).items()} == {1: oid, 2: oid}


def test_merging_main_into_a_branch_lands_nothing(upstream: Upstream) -> None:
    # Somebody pulled: the second parent is the main line of before, at which a closed pull request stands.
    before = upstream.push("Pushed", {"a": "1\n"})
    upstream.ref("refs/pull/9/head", before)
    land(upstream, "Merge branch 'main' of somewhere", before, {"b": "1\n"})
    assert found(upstream) == {}


def test_a_squash_that_lost_its_number_is_told_by_its_content(upstream: Upstream) -> None:
    upstream.squash(1, "As usual", {"z": "1\n"})
    fork = upstream.main
    upstream.push("Meanwhile", {"c": "1\n"})
    upstream.pull(5, [("step", {"a": "1\n"}), ("step two", {"a": "2\n", "b": "1\n"})], base=fork)
    base = upstream.main
    landed = upstream.push("Quite another title", {"a": "2\n", "b": "1\n"})
    record = found(upstream)[5].pull_request
    assert (record.form, record.evidence, record.certain) == (MergeForm.SQUASH, Evidence.SAME_TREE, True)
    assert (record.base, record.merged, record.title) == (base, landed, "Quite another title")


@pytest.mark.parametrize(
    ("pulled", "landed"),
    [
        ({"a": "2\n", "b": "1\n"}, {"a": "2\n"}),  # a part of the head
        ({"a": "2\n"}, {"a": "2\n", "b": "1\n"}),  # more than the head
        ({"a": "2\n"}, {"a": "3\n"}),
    ],
)
def test_a_push_that_is_not_the_whole_head_is_no_squash(
    upstream: Upstream, pulled: dict[str, str], landed: dict[str, str]
) -> None:
    upstream.squash(1, "As usual", {"z": "1\n"})
    upstream.pull(5, [("step", {"a": "1\n"}), ("step two", pulled)])
    upstream.push("Pushed", landed)
    assert set(found(upstream)) == {1}


def test_a_squash_at_home_is_no_merge_unless_it_names_the_pull_request(upstream: Upstream) -> None:
    upstream.squash(1, "As usual", {"z": "1\n"})
    for number, title in ((5, "By hand"), (6, "By hand (#6) [skip test]")):
        upstream.pull(number, [("step", {f"{number}": "1\n"}), ("two", {f"{number}": "2\n"})])
        upstream.push(title, {f"{number}": "2\n"}, committer="Ann")
    assert set(found(upstream)) == {1, 6}


def test_someone_elses_push_of_the_same_content_is_no_squash(upstream: Upstream) -> None:
    upstream.squash(1, "As usual", {"z": "1\n"})
    upstream.pull(5, [("step", {"a": "1\n"}), ("two", {"a": "2\n"})], author="Bob")
    upstream.push("Pushed", {"a": "2\n"})
    assert set(found(upstream)) == {1}


def test_merging_again_tells_what_landed_with_edits(upstream: Upstream) -> None:
    upstream.squash(1, "As it was", {"a": "1\n"})
    upstream.merge(2, "Merged", {"b": "1\n"})
    upstream.rebase(3, [("one", {"c": "1\n"}), ("two", {"c": "2\n"})])
    upstream.pull(4, [("x", {"d": "1\n"})])
    upstream.push("With an edit (#4)", {"d": "2\n"})
    fork = upstream.main
    upstream.push("Meanwhile", {"e": "1\n"})
    upstream.pull(6, [("x", {"e": "2\n"})], base=fork)
    upstream.push("After a conflict (#6)", {"e": "3\n"})
    upstream.push("Without a head (#99)", {"g": "1\n"})
    merged = discover(upstream.repo, "main").merged
    objects = sorted(upstream.repo.text("cat-file", "--batch-all-objects", "--batch-check").splitlines())
    assert verify_all(upstream.repo, merged) == {
        1: Verified.SAME_TREE,
        2: Verified.SAME_TREE,
        3: Verified.SAME_TREE,
        4: Verified.OTHER_TREE,
        6: Verified.CONFLICT,
        99: Verified.NO_HEAD,
    }
    # The upstream is only read.
    assert sorted(upstream.repo.text("cat-file", "--batch-all-objects", "--batch-check").splitlines()) == objects


def test_a_cherry_pick_to_a_release_branch_is_a_backport(upstream: Upstream) -> None:
    fork = upstream.main
    for number, value in ((1, 2), (2, 3)):
        upstream.squash(number, f"Fix {number}", {"pkg/add.py": kernel(value=value)})
    picked = upstream.main
    base = upstream.commit("Only here (#7)", {"pkg/other.py": kernel("other")}, [fork])
    again = upstream.commit(
        f"Fix 2, for the release\n\n(cherry picked from commit {picked})\n", {"pkg/add.py": kernel(value=3)}, [base]
    )
    upstream.ref("refs/heads/release", upstream.commit("Fix 1 (#1)", {"pkg/add.py": kernel(value=2)}, [again]))
    said = {c.pr: c for c in mine(upstream.repo, repo="o/r", url="u", branch="release").candidates}
    assert set(said) == {1, 2, 7}
    assert {n for n, c in said.items() if Flag.BACKPORT in c.flags} == {1, 2}
    assert said[1].base == again
    assert all(Flag.BACKPORT not in c.flags for c in mine(upstream.repo, repo="o/r", url="u").candidates)
    left = mine(upstream.repo, repo="o/r", url="u", branch="release", reject=["backport"])
    assert [c.pr for c in left.candidates] == [7]


def test_a_renamed_default_branch_is_followed(upstream: Upstream) -> None:
    upstream.squash(1, "Fix", {"pkg/add.py": kernel(value=2)})
    upstream.ref("refs/heads/trunk", upstream.main)
    upstream.repo.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    upstream.repo.git("update-ref", "-d", "refs/heads/main")
    assert [case.merged.number for case in survey(upstream.repo, repo="o/r").cases] == [1]
