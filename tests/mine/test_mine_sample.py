"""What mining says of the sample upstream is what its expectations say."""

from __future__ import annotations

from pathlib import Path

import pytest

from smith import sample
from smith.git.repository import Repository
from smith.mine import explain, mine
from smith.records.candidate import Candidate, Mined

# Kinds that the sample tells apart and a candidate never has.
_SIDE_KINDS = {"docs": "maintenance", "ci": "maintenance", "tests": "maintenance"}
_LANGUAGES = {"c": "native"}


@pytest.fixture(scope="module")
def mined(upstream_dir: Path) -> Mined:
    return mine(Repository(upstream_dir), repo=sample.REPO, url=sample.URL)


@pytest.fixture(scope="module")
def candidates(mined: Mined) -> dict[int, Candidate]:
    return {one.pr: one for one in mined.candidates}


def test_exactly_the_merged_pull_requests_are_seen(mined: Mined) -> None:
    numbers = {one.pr for one in mined.candidates} | {one.pr for one in mined.rejections}
    assert numbers == {one.number for one in sample.expectations()}
    assert mined.seen == len(mined.candidates) + len(mined.rejections) == len(numbers)


@pytest.mark.parametrize("expected", sample.expectations(), ids=lambda one: f"#{one.number}")
def test_each_is_what_it_should_be(
    expected: sample.Expectation, mined: Mined, candidates: dict[int, Candidate]
) -> None:
    if expected.mined != "candidate":
        (rejection,) = [one for one in mined.rejections if one.pr == expected.number]
        assert rejection.reason == expected.mined
        return
    candidate = candidates[expected.number]
    assert candidate.form == expected.style
    assert candidate.kind == _SIDE_KINDS.get(expected.kind, expected.kind)
    assert set(candidate.languages) == {_LANGUAGES.get(name, name) for name in expected.languages}
    # Git does not know the title of a pull request that landed commit by commit.
    if expected.style != "rebase":
        assert candidate.title == expected.title
    assert candidate.certain


def test_the_explanation_ends_with_the_decision(upstream_dir: Path) -> None:
    repo = Repository(upstream_dir)
    for expected in sample.expectations()[:6]:
        lines = explain(repo, repo=sample.REPO, number=expected.number)
        assert lines[0].startswith(f"{sample.REPO}#{expected.number}: ")
        assert expected.mined in lines[-1]
