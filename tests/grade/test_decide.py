"""From typed results to a verdict: everything expected must have passed, over a channel that was whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.freeze.globs import glob_pattern
from smith.grade.grader import decide
from smith.records.grade import Count, GradeVerdict
from smith.records.results import Outcome, TestResult, TestRun


def judged(*outcomes: Outcome, complete: bool = True, note: str = "") -> GradeVerdict:
    tests = tuple(TestResult(id=f"t.py::t{n}", outcome=o) for n, o in enumerate(outcomes))
    passed = Count(passed=sum(o is Outcome.PASSED for o in outcomes), total=len(outcomes))
    run = TestRun(results=tests, complete=complete, note=note)
    return decide(run, tests, passed, Count(passed=0, total=0))[0]


def test_all_passed_is_solved() -> None:
    assert judged(Outcome.PASSED, Outcome.PASSED) is GradeVerdict.SOLVED


@given(st.lists(st.sampled_from(Outcome), min_size=1, max_size=6))
def test_only_passes_are_solved(outcomes: list[Outcome]) -> None:
    solved = judged(*outcomes) is GradeVerdict.SOLVED
    assert solved == all(o is Outcome.PASSED for o in outcomes)


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.XFAILED, Outcome.XPASSED, Outcome.NOT_INTERPRETABLE])
def test_what_did_not_really_pass_is_a_failure_and_no_fault_of_the_machine(outcome: Outcome) -> None:
    assert judged(Outcome.PASSED, outcome) is GradeVerdict.FAILED


def test_a_run_without_its_end_is_no_success() -> None:
    assert judged(Outcome.PASSED, complete=False) is GradeVerdict.FAILED


def test_a_forged_record_is_tampering_whatever_passed() -> None:
    assert judged(Outcome.PASSED, complete=False, note="tampered: a line that is no record") is GradeVerdict.TAMPERED


def test_hanging_is_a_result() -> None:
    assert judged(Outcome.PASSED, Outcome.TIMEOUT) is GradeVerdict.TIMEOUT
    assert judged(Outcome.TIMEOUT, Outcome.FAILED) is GradeVerdict.FAILED


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("fla/**", "fla/ops/a.py", True),
        ("fla/**", "flash/ops/a.py", False),
        ("fla/**", "x/fla/a.py", False),
        ("**/*.cu", "a/b/c.cu", True),
        ("**/*.cu", "c.cu", True),
        ("*.py", "a/b.py", False),
        ("setup.py", "setupXpy", False),
        ("a?c/[x].py", "abc/[x].py", True),
        ("src/pkg/**", "src/pkg/\n.py", True),
    ],
)
def test_globs(glob: str, path: str, matches: bool) -> None:
    assert bool(glob_pattern(glob).fullmatch(path)) is matches
