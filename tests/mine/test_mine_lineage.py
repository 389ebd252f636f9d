"""Which pull requests stay together, and which do not although they share a kernel."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.mine import reverts as reverts_
from smith.mine.discover import discover
from smith.mine.lineage import group, members, mentioned
from smith.mine.reverts import Reverts
from smith.mine.signals import Landed
from smith.records.candidate import Kind
from tests.mine.mine_upstreams import Upstream, kernel

REPO = "own/kernels"
NO_REVERTS = Reverts({}, {})
START = datetime(2025, 1, 1, tzinfo=UTC)


def landed(
    number: int,
    *kernels: str,
    day: float = 0,
    kind: Kind = Kind.FEATURE,
    title: str = "",
    body: str = "",
    mass: bool = False,
) -> Landed:
    moment = (START + timedelta(days=day)).isoformat()
    names = frozenset(("a.py", name) for name in kernels)
    return Landed(number, kind, moment, names, title=title, body=body, mass=mass)


def groups(*history: Landed, reverts: Reverts = NO_REVERTS, days: int = 14) -> set[tuple[int, ...]]:
    return set(members(group(REPO, history, reverts, days=days)).values())


def test_a_lineage_is_named_by_its_smallest_number() -> None:
    lineages = group(REPO, [landed(9), landed(12, body="Follow-up to #9"), landed(3)], NO_REVERTS)
    assert lineages == {9: "own/kernels#9", 12: "own/kernels#9", 3: "own/kernels#3"}


@pytest.mark.parametrize(
    "words",
    [
        "Follow-up to #12",
        "follow up of PR #12",
        "fixes regression from #12",
        "Fixes the bug introduced by #12",
        "broken by\n#12",
        "Regression in own/kernels#12",
        "continuation of #12",
        "backport of #12",
    ],
)
def test_follow_ups_are_named_in_words(words: str) -> None:
    assert mentioned(REPO, "", words) == (12,) == mentioned(REPO, words, "")


@pytest.mark.parametrize("words", ["Fixes #12", "see #12", "as in #12", "follow-up to other/project#12", "like (#12)"])
def test_other_mentions_tie_nothing(words: str) -> None:
    assert mentioned(REPO, "", words) == ()


def test_reverts_and_relands_stay_with_what_they_take_back() -> None:
    reverts = Reverts({1: "#2"}, {}, {2: 1}, {3: 1})
    assert groups(landed(1), landed(2), landed(3), landed(4), reverts=reverts) == {(1, 2, 3), (4,)}


def test_a_fix_soon_after_the_last_change_of_its_kernel_is_a_follow_up() -> None:
    history = [landed(1, "f"), landed(2, "f", day=20), landed(3, "f", day=25, kind=Kind.FIX)]
    assert groups(*history) == {(1,), (2, 3)}
    assert groups(*history, days=3) == {(1,), (2,), (3,)}


def test_of_several_last_changes_the_one_that_shares_most_is_followed_up() -> None:
    history = [landed(1, "f", "g"), landed(2, "h"), landed(3, "f", "g", "h", kind=Kind.FIX)]
    assert groups(*history) == {(1, 3), (2,)}


def test_features_and_mass_edits_glue_nothing() -> None:
    assert len(groups(landed(1, "f"), landed(2, "f", kind=Kind.PERF))) == 2
    assert len(groups(landed(1, "f", mass=True), landed(2, "f", kind=Kind.FIX))) == 2
    assert len(groups(landed(1, "f"), landed(2, "f", kind=Kind.FIX, mass=True, body="Follow-up to #1"))) == 2


def test_a_kernel_that_is_fixed_all_the_time_glues_no_history_together() -> None:
    history = [landed(number, "hub", day=number, kind=Kind.FIX) for number in range(1, 101)]
    assert max(len(one) for one in groups(*history)) <= 8


@given(st.lists(st.tuples(st.sampled_from("fgh"), st.booleans(), st.integers(0, 30)), min_size=1, max_size=30))
def test_each_is_in_one_lineage_and_what_lands_later_without_words_moves_nobody(
    items: list[tuple[str, bool, int]],
) -> None:
    days, history = 0, list[Landed]()
    for number, (name, is_fix, gap) in enumerate(items, 1):
        days += gap
        history.append(landed(number, name, day=days, kind=Kind.FIX if is_fix else Kind.PERF))
    whole = group(REPO, history, NO_REVERTS)
    assert set(whole) == {one.number for one in history}
    for end in range(len(history)):
        assert group(REPO, history[:end], NO_REVERTS).items() <= whole.items()


def test_reverts_of_a_real_history_say_what_they_take_back_and_land_again(tmp_path: Path) -> None:
    upstream = Upstream.make(tmp_path / "up.git")
    upstream.squash(1, "Add scale", {"pkg/scale.py": kernel("scale")})
    upstream.squash(2, 'Revert "Add scale"', {"pkg/scale.py": None}, "Reverts #1")
    upstream.squash(3, 'Reland "Add scale"', {"pkg/scale.py": kernel("scale", 2)})
    upstream.squash(4, "Add shift", {"pkg/shift.py": kernel("shift")})
    upstream.squash(5, 'Revert "Add shift"', {"pkg/shift.py": None}, "Reverts #4")
    upstream.squash(6, 'Revert "Revert "Add shift""', {"pkg/shift.py": kernel("shift")}, "Reverts #5")
    found = reverts_.find(discover(upstream.repo, "main"))
    assert found.takes_back == {2: 1, 5: 4, 6: 5}
    assert found.lands_again == {3: 1, 6: 4}
    lineages = group(REPO, [landed(number) for number in range(1, 7)], found)
    assert set(members(lineages).values()) == {(1, 2, 3), (4, 5, 6)}
