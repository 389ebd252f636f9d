"""Extra hidden tests of a bundle: what must hold of them besides what holds of upstream's own.

Upstream's tests are evidence of somebody who ran them; an extra test is a claim. So one that fails on the reference, is
unstable or cannot be collected makes the bundle invalid, where a test of upstream's would only be left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from smith.records.facts import TestFacts
from smith.records.results import Outcome

_CANNOT_TELL = frozenset({Outcome.PASSED, Outcome.SKIPPED, Outcome.NOT_INTERPRETABLE, Outcome.MISSING})
"""Outcomes on the reference that are no fault of a test: it passes, or the device or the time does not allow it."""


def of(files: Collection[str], test_id: str) -> bool:
    """Whether a test id is of one of the extra test ``files``."""
    return test_id.partition("::")[0] in files


def uncollected(files: Sequence[str], ids: Sequence[str], errors: Mapping[str, str]) -> str:
    """Which extra test gives no ids, and why; empty where all do. ``errors`` are those of collecting, by file."""
    there = {test_id.partition("::")[0] for test_id in ids}
    for file in files:
        # Where nothing at all was collected, the fault is the environment's.
        if file not in there and (there or file in errors):
            return f"{file} holds no test that can be collected: {errors.get(file, 'no test function')}"[:500]
    return ""


def faulty(files: Collection[str], tests: Mapping[str, TestFacts], flaky: Collection[str]) -> str:
    """Which extra test does not pass on the reference every time, and how; empty where all do."""
    for test_id, facts in tests.items():
        if not of(files, test_id) or not facts.reference:
            continue
        first = facts.reference[0]
        if first.outcome not in _CANNOT_TELL:
            return f"{test_id} does not pass on the reference: {first.outcome.value}: {facts.message}"[:500]
        if test_id in flaky:
            return f"{test_id} is unstable: its outcome changed between repeats"
    return ""
