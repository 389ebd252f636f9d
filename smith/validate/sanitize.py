"""One more run of reference and base, under the sanitizer: facts for the receipt that leave the verdict as it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from smith.freeze.bundle import Bundle
from smith.grade.trial import Bench, trial
from smith.harness.environment import TestEnvironment
from smith.records.results import Outcome
from smith.records.sanitizer import SanitizerReport, SanitizerRun, sightings

MOST_NAMED = 10
"""At most so many tests that do not pass under the sanitizer are named."""


def sanitize(
    bench: Bench,
    bundle: Bundle,
    environment: TestEnvironment,
    trees: tuple[str, str],
    ids: Sequence[str],
    step: Callable[[str], None],
) -> SanitizerReport:
    """Run ``ids`` on the reference and the base, the two ``trees``, each in a fresh place."""

    def one(arm: str, tree: str) -> SanitizerRun:
        step(f"sanitizer on the {arm}")
        began = time.monotonic()
        with trial(bench, bundle, environment, tree) as place:
            results = place.run(ids, sanitize=True).by_id() if place.build_error is None else {}
        passed = {i for i, result in results.items() if result.outcome is Outcome.PASSED}
        return SanitizerRun(
            tests=len(ids),
            findings=sightings(results.values()),
            not_passed=tuple(i for i in ids if i not in passed)[:MOST_NAMED],
            seconds=round(time.monotonic() - began, 2),
        )

    reference, base = trees
    return SanitizerReport(reference=one("reference", reference), base=one("base", base))


def told(report: SanitizerReport) -> list[str]:
    """What people should read of it, a line each."""
    lines = [f"sanitizer: the reference is not clean: {sighting}" for sighting in report.reference.faults]
    if report.mended is not None:
        lines += [f"sanitizer: the base is not clean, and the reference is: {s}" for s in report.base.faults]
    elif report.clean:
        lines.append(f"sanitizer: reference and base are clean in {report.reference.tests} tests")
    if report.reference.not_passed:
        lines.append(f"sanitizer: under it the reference does not pass {', '.join(report.reference.not_passed[:3])}")
    return lines
