"""Which pull requests were merged, and how: every style, and every trap met in real histories."""

from __future__ import annotations

from pathlib import Path

import pytest

from smith.mine.discover import Merged, discover
from smith.records.pull_request import Evidence, MergeForm
from tests.mine.mine_upstreams import Upstream, kernel


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "up.git")


def found(upstream: Upstream) -> dict[int, Merged]:
    return {one.number: one for one in discover(upstream.repo, "main").merged}


def test_a_squash_is_told_by_the_last_number(upstream: Upstream) -> None:
    base = upstream.main
    upstream.pull(7, [("x", {"a": "1"})])
    landed = upstream.push("Fix #3 as in (#4) (#7)\n\nDetails\n", {"a": "1"})
    record = found(upstream)[7].pull_request
    assert set(found(upstream)) == {7}
    assert (record.form, record.base, record.merged) == (MergeForm.SQUASH, base, landed)
    assert (record.title, record.body, record.evidence) == ("Fix #3 as in (#4)", "Details", Evidence.SUBJECT)


def test_a_long_title_is_put_together_again(upstream: Upstream) -> None:
    upstream.push("A title that goes on… (#7)\n\n…and on to its end\n\nBody\n", {"a": "1"})
    record = found(upstream)[7].pull_request
    assert (record.title, record.body) == ("A title that goes onand on to its end", "Body")


@pytest.mark.parametrize("subject", ["Fix (#7) in the middle", "See #7", 'Revert "Fix (#7)"', "Fix (#x)"])
def test_numbers_elsewhere_are_no_pull_request(upstream: Upstream, subject: str) -> None:
    upstream.push(subject, {"a": "1"})
    assert found(upstream) == {}


def test_an_issue_number_at_the_end_is_no_pull_request(upstream: Upstream) -> None:
    for number in (1, 2, 9):
        upstream.squash(number, f"Change {number}", {f"{number}": "1"})
    upstream.push("Pushed for an issue (#5)", {"a": "1"})
    upstream.push("Newer than what was fetched (#12)", {"b": "1"})
    assert set(found(upstream)) == {1, 2, 9, 12}


def test_a_merge_takes_its_title_from_the_body(upstream: Upstream) -> None:
    base = upstream.main
    landed = upstream.merge(8, "Add b", {"pkg/b.py": kernel("b")})
    one = found(upstream)[8]
    assert (one.pull_request.form, one.pull_request.title) == (MergeForm.MERGE, "Add b")
    assert (one.pull_request.base, one.pull_request.merged) == (base, landed)
    assert [change.path for change in one.changes] == ["pkg/b.py"]


def test_a_number_counts_where_it_landed_first(upstream: Upstream) -> None:
    first = upstream.squash(5, "Thing", {"a": "1"})
    upstream.push("fixup! Thing (#5)", {"a": "2"})
    assert found(upstream)[5].pull_request.merged == first


def test_a_root_is_no_landing(tmp_path: Path) -> None:
    upstream = Upstream.make(tmp_path / "up.git")
    upstream.main = ""
    upstream.push("First (#1)", {"a": "1"})
    assert found(upstream) == {}


def test_a_rebase_of_one_and_of_several(upstream: Upstream) -> None:
    fork = upstream.main
    upstream.squash(1, "Elsewhere", {"x": "1"})
    base = upstream.main
    steps = [("Step one", {"pkg/b.py": kernel("b")}), ("Step two", {"pkg/c.py": kernel("c")})]
    landed = upstream.rebase(2, steps, base=fork)
    single = upstream.rebase(3, [("Alone", {"pkg/d.py": kernel("d")})])
    several, alone = found(upstream)[2], found(upstream)[3]
    record = several.pull_request
    assert (record.form, record.evidence, record.certain) == (MergeForm.REBASE, Evidence.PATCH_ID, True)
    assert (record.base, record.merged, record.commits) == (base, landed[-1], 2)
    assert [change.path for change in several.changes] == ["pkg/b.py", "pkg/c.py"]
    assert alone.pull_request.base == landed[-1] and alone.pull_request.merged == single[0]


def test_fixups_with_one_subject_are_told_by_their_patches(upstream: Upstream) -> None:
    steps = [("Work", {"a": "1\n"}), ("fixup! Work", {"b": "1\n"}), ("fixup! Work", {"c": "1\n"})]
    base = upstream.main
    upstream.rebase(4, steps)
    record = found(upstream)[4].pull_request
    assert (record.base, record.commits) == (base, 3)


def test_a_stack_of_rebases_is_two_pull_requests(upstream: Upstream) -> None:
    one = [("First", {"a": "1\n"})]
    both = [*one, ("Second", {"b": "1\n"})]
    fork = upstream.main
    first = upstream.rebase(10, one)
    upstream.pull(11, both, base=fork)
    head = upstream.repo.resolve("refs/pull/11/head")
    authored = int(upstream.repo.text("log", "-1", "--format=%at", head))
    upstream.clock += 7 * 3600
    second = upstream.commit("Second", {"b": "1\n"}, [upstream.main], authored=authored, committer="Max")
    upstream._land(second)
    pulls = {number: one.pull_request for number, one in found(upstream).items()}
    assert pulls[10].merged == first[0]
    assert (pulls[11].base, pulls[11].merged, pulls[11].commits) == (first[0], second, 1)


def test_what_landed_under_another_number_is_one_pull_request(upstream: Upstream) -> None:
    steps = [("Work", {"a": "1\n"}), ("More", {"b": "1\n"})]
    fork = upstream.main
    upstream.pull(20, steps[:1], base=fork)
    upstream.pull(21, steps, base=fork)
    upstream.rebase(22, steps, base=fork)
    assert set(found(upstream)) == {22}


def test_a_head_that_is_an_ancestor_of_main_did_not_land(upstream: Upstream) -> None:
    upstream.push("Pushed", {"a": "1\n"})
    upstream.ref("refs/pull/30/head", upstream.main)
    upstream.push("On top", {"b": "1\n"})
    assert found(upstream) == {}


def test_a_backport_of_a_pushed_commit_did_not_land(upstream: Upstream) -> None:
    fork = upstream.main
    upstream.push("Pushed", {"a": "1\n"})
    upstream.pull(31, [("Pushed", {"a": "1\n"})], base=fork)
    assert found(upstream) == {}


def test_a_half_landed_branch_did_not_land(upstream: Upstream) -> None:
    upstream.pull(40, [("Work", {"a": "1\n"}), ("Never", {"b": "1\n"})])
    upstream.clock += 3600
    upstream.push("Work", {"a": "1\n"})
    assert found(upstream) == {}


def test_a_changed_patch_with_the_same_words_is_likely(upstream: Upstream) -> None:
    head = upstream.pull(50, [("Work", {"a": "1\n"})])
    authored = int(upstream.repo.text("log", "-1", "--format=%at", head))
    upstream.push("Work", {"a": "1\n2\n"}, authored=authored)
    record = found(upstream)[50].pull_request
    assert (record.evidence, record.certain) == (Evidence.AUTHOR_AND_SUBJECT, False)


def test_newest_landings_come_first(upstream: Upstream) -> None:
    upstream.squash(3, "Three", {"a": "1"})
    upstream.squash(1, "One", {"b": "1"})
    upstream.merge(2, "Two", {"c": "1"})
    assert [one.number for one in discover(upstream.repo, "main").merged] == [2, 1, 3]
