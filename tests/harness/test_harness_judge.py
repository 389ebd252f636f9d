"""Announced, started, finished and expected ids must agree."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import pytest

from smith.harness.channel import Announced, AnyRecord, End, Hello, Result, Start, Uncollected
from smith.harness.judge import Account, death_of
from smith.records.results import Failure, Outcome

HELLO = Hello(kind="hello", python="3", pytest="9")
END = End(kind="end", status=0)


def announced(name: str) -> Announced:
    return Announced(kind="announced", id=name)


def start(name: str) -> Start:
    return Start(kind="start", id=name)


def result(name: str, outcome: Outcome = Outcome.PASSED) -> Result:
    return Result(kind="result", id=name, outcome=outcome, seconds=0, failure=None, message="", launches={})


def uncollected(node: str, *, refused: bool = False, skipped: bool = False) -> Uncollected:
    return Uncollected(
        kind="uncollected", node=node, error="E", failure=Failure.COLLECTION, message="m", refused=refused,
        skipped=skipped,
    )  # fmt: skip


def judged(records: Sequence[AnyRecord], expected: Sequence[str] = ("a", "b")) -> Account:
    account = Account(frozenset(expected))
    account.take(records)
    return account


def test_a_whole_account_is_complete() -> None:
    account = judged([HELLO, announced("a"), announced("b"), start("b"), result("b"), start("a"), result("a"), END])
    assert account.complete and account.fault is None
    assert [r.outcome for r in account.verdict(["a", "b"], False)] == [Outcome.PASSED, Outcome.PASSED]


@pytest.mark.parametrize(
    "records",
    [
        [start("a")],
        [HELLO, HELLO],
        [HELLO, announced("a"), announced("a")],
        [HELLO, announced("c")],
        [HELLO, start("a")],
        [HELLO, announced("a"), result("a")],
        [HELLO, announced("a"), announced("b"), start("a"), start("b")],
        [HELLO, announced("a"), announced("b"), start("a"), result("b")],
        [HELLO, announced("a"), start("a"), result("a"), result("a")],
        [HELLO, announced("a"), start("a"), result("a"), start("a")],
        [HELLO, announced("a"), END, start("a")],
    ],
)
def test_a_record_that_cannot_follow_is_a_fault(records: list[AnyRecord]) -> None:
    account = judged(records)
    assert account.fault is not None and not account.complete


def test_what_was_reported_before_a_fault_is_kept() -> None:
    account = judged([HELLO, announced("a"), start("a"), result("a"), result("b")])
    assert [r.outcome for r in account.verdict(["a", "b"], False)] == [Outcome.PASSED, Outcome.MISSING]


@pytest.mark.parametrize(("timed_out", "outcome"), [(False, Outcome.CRASHED), (True, Outcome.TIMEOUT)])
def test_an_id_left_open_crashed_or_ran_out_of_time(timed_out: bool, outcome: Outcome) -> None:
    account = judged([HELLO, announced("a"), announced("b"), start("a")])
    assert [r.outcome for r in account.verdict(["a", "b"], timed_out)] == [outcome, Outcome.MISSING]
    assert not account.complete


@pytest.mark.parametrize("node", ["", ".", "t", "t/f.py", "t/f.py::C"])
def test_an_error_covers_what_lies_below_it(node: str) -> None:
    account = judged([HELLO, uncollected(node), END], ["t/f.py::C::m"])
    [found] = account.verdict(["t/f.py::C::m"], False)
    assert (found.outcome, found.failure) == (Outcome.ERROR, Failure.COLLECTION)


@pytest.mark.parametrize("node", ["t/f", "t/f.pyx", "f.py", "t/f.py::C::me"])
def test_an_error_covers_nothing_else(node: str) -> None:
    account = judged([HELLO, uncollected(node), END], ["t/f.py::C::m"])
    assert account.verdict(["t/f.py::C::m"], False)[0].outcome is Outcome.MISSING


def test_skipped_and_refused_files_are_told_apart() -> None:
    account = judged([HELLO, uncollected("f.py", skipped=True), uncollected("g.py", refused=True), END])
    found = account.verdict(["f.py::a", "g.py::a"], False)
    assert [r.outcome for r in found] == [Outcome.SKIPPED, Outcome.NOT_INTERPRETABLE]


@pytest.mark.parametrize(
    ("status", "breach", "failure"),
    [
        (-signal.SIGSEGV, None, Failure.KERNEL_ERROR),
        (-signal.SIGABRT, None, Failure.KERNEL_ERROR),
        (-signal.SIGKILL, None, Failure.OTHER),
        (0, None, Failure.OTHER),
        (-signal.SIGKILL, "memory", Failure.OUT_OF_MEMORY),
        (-signal.SIGKILL, "processes", Failure.HARNESS),
    ],
)
def test_how_a_process_died_is_told_by_its_status(status: int, breach: str | None, failure: Failure) -> None:
    account = judged([HELLO, announced("a"), start("a")])
    account.death = death_of(status, breach)
    crashed, missing = account.verdict(["a", "b"], False)
    assert (crashed.outcome, crashed.failure) == (Outcome.CRASHED, failure)
    # The other was not run: that is the harness's to say, and no fault of the code.
    expected = Failure.OUT_OF_MEMORY if failure is Failure.OUT_OF_MEMORY else Failure.HARNESS
    assert (missing.outcome, missing.failure) == (Outcome.MISSING, expected)


def test_what_a_whole_run_did_not_come_to_is_only_missing() -> None:
    assert judged([HELLO, END]).verdict(["a"], False)[0].failure is None
