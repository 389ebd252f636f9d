"""What the sanitizer saw of reference and base while the tests of a task ran."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from smith.records.base import Record
from smith.records.memory import MemoryFinding
from smith.records.results import TestResult

MOST = 40
"""At most so many sightings of one run are kept."""


class Sighting(Record):
    """A finding with the tests in which it was seen."""

    finding: MemoryFinding
    """As in the first test."""
    test: str
    """The first test."""
    tests: int = Field(ge=1)
    """How many tests."""

    def __str__(self) -> str:
        return f"{self.finding} (in {self.test}{f' and {self.tests - 1} more' if self.tests > 1 else ''})"


class SanitizerRun(Record):
    """One run of tests under the sanitizer."""

    tests: int
    findings: tuple[Sighting, ...] = ()
    """Faults first."""
    not_passed: tuple[str, ...] = ()
    """Ids that did not pass in this run, at most a few: what is out of bounds is not carried out, memory that nobody
    wrote holds NaN, and everything is slower."""
    seconds: float = 0.0

    @property
    def faults(self) -> tuple[Sighting, ...]:
        return tuple(s for s in self.findings if s.finding.kind.is_fault)

    @property
    def information(self) -> tuple[Sighting, ...]:
        return tuple(s for s in self.findings if not s.finding.kind.is_fault)


class SanitizerReport(Record):
    """Reference and base on the tests that count, in one more run of each."""

    reference: SanitizerRun
    base: SanitizerRun

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong with the reference."""
        return not self.reference.faults

    @property
    def mended(self) -> Sighting | None:
        """A fault of the base where the reference has none: what the pull request mended, and a CPU forgives."""
        return self.base.faults[0] if self.clean and self.base.faults else None

    def agrees_with(self, other: SanitizerReport) -> bool:
        """Whether both saw the same, whatever the figures of a first time."""
        runs = ((self.reference, other.reference), (self.base, other.base))
        return all({s.finding.key for s in a.findings} == {s.finding.key for s in b.findings} for a, b in runs)


def sightings(results: Iterable[TestResult]) -> tuple[Sighting, ...]:
    """The findings of all tests, one for each kind, kernel and line; faults first, in the order of the tests."""
    found: dict[tuple[str, str, str, int], Sighting] = {}
    for result in results:
        for finding in result.findings:
            known = found.get(finding.key)
            found[finding.key] = (
                Sighting(finding=finding, test=result.id, tests=1)
                if known is None
                else known.model_copy(update={"tests": known.tests + 1})
            )
    return tuple(sorted(found.values(), key=lambda s: not s.finding.kind.is_fault)[:MOST])
