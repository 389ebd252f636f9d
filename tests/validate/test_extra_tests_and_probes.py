"""What validation says of extra tests and probes, as far as no run is needed for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from smith.records.facts import Seen, TestFacts
from smith.records.results import Outcome
from smith.records.task import Probes, Selection
from smith.verdict import authored

EXTRA = "tests/test_extra_x.py"
FILES = (EXTRA,)


def seen(outcome: Outcome) -> TestFacts:
    return TestFacts(reference=(Seen(outcome),))


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (Outcome.PASSED, ""),
        (Outcome.SKIPPED, ""),
        (Outcome.NOT_INTERPRETABLE, ""),
        (Outcome.MISSING, ""),
        (Outcome.FAILED, "does not pass"),
        (Outcome.ERROR, "does not pass"),
        (Outcome.TIMEOUT, "does not pass"),
        (Outcome.CRASHED, "does not pass"),
        (Outcome.XPASSED, "does not pass"),
    ],
)
def test_an_extra_test_must_pass_on_the_reference(outcome: Outcome, word: str) -> None:
    test_id = f"{EXTRA}::test_a"
    said = authored.faulty(FILES, {test_id: seen(outcome)}, ())
    assert bool(said) == bool(word)
    assert word in said


def test_upstreams_own_test_may_fail_and_be_left_out() -> None:
    test_id = "tests/test_x.py::test_a"
    assert authored.faulty(FILES, {test_id: seen(Outcome.FAILED)}, [test_id]) == ""


def test_an_unstable_extra_test_is_named() -> None:
    test_id = f"{EXTRA}::test_a"
    assert "unstable" in authored.faulty(FILES, {test_id: seen(Outcome.PASSED)}, [test_id])


def test_an_extra_file_without_tests_is_told_from_an_environment_that_collects_nothing() -> None:
    assert "no test function" in authored.uncollected(FILES, ["tests/test_x.py::test_a"], {})
    assert "ImportError" in authored.uncollected(FILES, [], {EXTRA: "ImportError: x"})
    assert authored.uncollected(FILES, [], {"": "conftest"}) == ""


@pytest.mark.parametrize("path", ["../test_extra_x.py", "/test_extra_x.py", "tests/test_x.py", "a/.b/test_extra_x.py"])
def test_an_extra_test_has_its_place(path: str) -> None:
    with pytest.raises(ValidationError):
        Selection(tree="0" * 40, files=(), authored=(path,))


def test_bundles_without_extra_tests_are_the_same_bytes_as_before() -> None:
    assert b"authored" not in Selection(tree="0" * 40, files=()).dumps()


PATH = st.lists(st.sampled_from(["a", "b", "tests"]), min_size=1, max_size=3).map("/".join)


@given(st.lists(PATH, max_size=3), st.lists(PATH, max_size=4), PATH)
def test_no_place_of_hidden_tests_lies_below_another_folder_of_theirs(
    roots: list[str], extra: list[str], path: str
) -> None:
    selection = Selection(tree="0" * 40, roots=tuple(roots), extra=tuple(extra), files=())
    assert not any(place.startswith(f"{root}/") for place in selection.places for root in roots)
    hidden = path in extra or path in roots or any(path.startswith(f"{root}/") for root in roots)
    assert selection.hides(path) >= hidden


def test_probes_have_names_of_their_own() -> None:
    one = {"name": "same", "kind": "wrong", "focus": "x"}
    with pytest.raises(ValidationError, match="one name"):
        Probes.model_validate({"probes": [one, {**one, "kind": "alternative"}]})
