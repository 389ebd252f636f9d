"""Whether a grade can be what the grader said: it must follow from its own tests and from the pinned receipt."""

from __future__ import annotations

import math
from collections.abc import Iterator

from smith.evaluate.run import AttemptState
from smith.records.agent_run import AgentRun
from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.panel import PanelTask
from smith.records.receipt import Answer, Receipt, Timing
from smith.records.results import Outcome
from smith.score.intervals import contradiction


def faults(state: AttemptState, pinned: PanelTask, receipt: Receipt | None, agent: AgentRun | None) -> Iterator[str]:
    """What is wrong with one attempt, a sentence each. It proves no grade: only grading again does."""
    attempt, grade = state.attempt, state.grade
    if attempt is None or grade is None:
        yield "is missing, or its files do not belong together"
        return
    if grade.verdict is GradeVerdict.INFRA:
        yield "was not graded"
        return
    if grade.receipt is None or grade.receipt != pinned.receipts.get(grade.device):
        yield f"was not held against the receipt that the panel pins for {grade.device}"
        return
    if receipt is None:
        yield f"the receipt {grade.receipt[:12]} that the panel pins is not here (a shallow clone?)"
        return
    yield from _tests(grade, receipt)
    if grade.verdict is GradeVerdict.SOLVED:
        yield from _solved(grade, receipt)
    if grade.speedup is not None and (fault := _timing_fault(grade.speedup)):
        yield fault
    spent = (attempt.micro_usd, attempt.input_tokens, attempt.output_tokens, attempt.seconds, grade.seconds)
    if not all(math.isfinite(value) and value >= 0 for value in spent):
        yield "cost less than nothing, or no number"
    if agent is not None and agent.micro_usd != attempt.micro_usd:
        yield f"cost {attempt.micro_usd} micro-dollars, and its agent's record says {agent.micro_usd}"


def _tests(grade: Grade, receipt: Receipt) -> Iterator[str]:
    ids = [*receipt.fail_to_pass, *receipt.pass_to_pass]
    if grade.tests and [test.id for test in grade.tests] != ids:
        yield "its tests are not those of the receipt"
        return
    passed = {test.id for test in grade.tests if test.outcome is Outcome.PASSED}
    for name, found, wanted in (
        ("fail-to-pass", grade.fail_to_pass, receipt.fail_to_pass),
        ("pass-to-pass", grade.pass_to_pass, receipt.pass_to_pass),
    ):
        right = Count(passed=sum(i in passed for i in wanted), total=len(wanted))
        if found != right:
            yield f"counts {found.passed} of {found.total} {name} tests, and they are {right.passed} of {right.total}"


def _solved(grade: Grade, receipt: Receipt) -> Iterator[str]:
    if grade.reasons:
        yield "is solved, and has reasons why not"
    if any(test.outcome is not Outcome.PASSED for test in grade.tests) or not grade.tests:
        yield "is solved, and not all of its tests passed"
    if receipt.timing is not None and (grade.speedup is None or grade.speedup.answer is not Answer.FASTER):
        yield "is solved, and was not measured to be faster, which the task asks for"
    if grade.oracle is not None and (grade.oracle.differences or not grade.oracle.agreed):
        yield "is solved, and does not agree with the reference on fresh inputs"


def _timing_fault(timing: Timing) -> str:
    every = (timing.low, timing.geomean, timing.high, timing.worst, *(case.ratio for case in timing.cases))
    if not all(math.isfinite(value) and value > 0 for value in every):
        return "a speed-up is no positive number"
    ratios = [case.ratio for case in timing.cases]
    return contradiction(timing.geomean, timing.low, timing.high, timing.worst, ratios)
