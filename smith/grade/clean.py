"""Whether a submission that passes is also clean, where the policy asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from smith.records.base import Reason
from smith.records.receipt import Receipt
from smith.records.results import Outcome, TestRun
from smith.records.sanitizer import sightings

MOST = 10


def not_clean(run: TestRun, ids: Sequence[str], receipt: Receipt) -> tuple[Reason, ...]:
    """Why the submission is not clean, from a run of ``ids`` under the sanitizer; empty where it is.

    Faults that the reference has too, of one kind in one kernel, are not held against it. A test that does not pass
    under the sanitizer has not been shown to be clean.
    """
    report = receipt.sanitizer
    known = {(s.finding.kind, s.finding.kernel) for s in report.reference.faults} if report is not None else set()
    faults = [s for s in sightings(run.results) if s.finding.kind.is_fault]
    held = [s for s in faults if (s.finding.kind, s.finding.kernel) not in known]
    results = run.by_id()
    forgiven = set(report.reference.not_passed) if report is not None else set()
    missed = [i for i in ids if i not in forgiven and (i not in results or results[i].outcome is not Outcome.PASSED)]
    reasons = [Reason(code="not_clean", detail=str(sighting)) for sighting in held]
    reasons += [Reason(code="not_clean", detail=f"{i} does not pass under the sanitizer") for i in missed]
    return tuple(reasons[:MOST])
