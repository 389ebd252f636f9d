"""Where the reference passes no test: a fault is the bundle's, and what the machine lacks leaves it unresolvable."""

from __future__ import annotations

import pytest

from smith.records.candidate import Kind
from smith.records.facts import Asked, Facts, Seen, TestFacts
from smith.verdict.decide import decide

DEVICE = "interpreter:gfx942"


@pytest.mark.parametrize(
    ("seen", "verdict", "code"),
    [
        ("skipped skipped", "unresolvable", "needs_device"),
        # Skips cost nothing: that all which ran was skipped says nothing of what was not reached.
        ("skipped missing missing", "unresolvable", "timeout"),
        ("skipped timeout", "unresolvable", "timeout"),
        ("timeout missing", "unresolvable", "timeout"),
        ("missing", "unresolvable", "timeout"),
        ("not_interpretable skipped missing timeout", "unresolvable", "not_interpretable"),
        ("failed:device_missing skipped", "unresolvable", "needs_device"),
        ("failed:out_of_memory timeout", "unresolvable", "needs_device"),
        ("error:harness missing", "unresolvable", "environment"),
        ("xfailed", "invalid", "reference_fails"),
        ("failed:assertion skipped missing", "invalid", "reference_fails"),
        ("failed:assertion failed:device_missing", "invalid", "reference_fails"),
        ("not_interpretable error:import", "invalid", "reference_fails"),
        ("crashed", "invalid", "reference_fails"),
    ],
)
def test_why_nothing_passes(seen: str, verdict: str, code: str) -> None:
    tests = {
        f"tests/test_a.py::test_{n}": TestFacts(reference=(Seen.parse(word),)) for n, word in enumerate(seen.split())
    }
    said = decide(Facts(asked=Asked(kind=Kind.FIX, budget_s=30), tests=tests), DEVICE)
    assert (said.verdict.value, [reason.code for reason in said.reasons]) == (verdict, [code])


def test_how_many_were_skipped_and_how_many_not_reached_is_said() -> None:
    words = ["skipped", "skipped", "missing"]
    tests = {
        str(n): TestFacts(reference=(Seen.parse(word),), message="wants Triton 3.5" if not n else "")
        for n, word in enumerate(words)
    }
    said = decide(Facts(asked=Asked(kind=Kind.FIX, budget_s=30), tests=tests), DEVICE)
    assert "2 of 3 tests are skipped here, and 1 do not end in the time allowed: wants Triton 3.5" in str(
        said.reasons[0]
    )
