"""Whether a merged pull request is a candidate, and if not, why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from smith.mine.classify import Shape
from smith.mine.discover import Merged
from smith.records.candidate import Kind, Role

Reason = tuple[str, str]
"""A typed reason and a detail for people."""

_TESTS = frozenset({Role.TEST, Role.TEST_SUPPORT})
# Side roles, from what says least about a change to what says most: a change is named after the last one it has.
_SIDE: tuple[tuple[frozenset[Role], str], ...] = (
    (frozenset({Role.DOCS}), "docs_only"),
    (frozenset({Role.CI}), "ci_only"),
    (frozenset({Role.BENCHMARK}), "benchmark_only"),
    (_TESTS, "tests_only"),
    (frozenset({Role.CONFIG}), "config_only"),
)


@dataclass(frozen=True)
class Case:
    """All that is known of one merged pull request when it is decided on."""

    merged: Merged
    shape: Shape
    kind: Kind
    kind_evidence: str
    reverted_by: str | None
    mass: bool

    @property
    def flags(self) -> tuple[str, ...]:
        """What the recommended filters look at."""
        flags = {
            "reverted": self.reverted_by is not None,
            "revert": self.kind is Kind.REVERT,
            "reland": self.kind is Kind.RELAND,
            "maintenance": self.kind is Kind.MAINTENANCE,
            "mass_edit": self.mass,
            "host_only": bool(self.shape.kernels) and not self.shape.symbols,
            "no_tests": not self.shape.roles & _TESTS,
            "uncertain": not self.merged.pull_request.certain,
        }
        return tuple(name for name, is_set in flags.items() if is_set)


def decide(
    case: Case,
    languages: Collection[str] = (),
    kinds: Collection[Kind] = (),
    *,
    all: bool = False,
) -> Reason | None:
    """None for a candidate, else the reason against it: the recommended filters first, then the user's."""
    reason = _whole(case) if all else _recommended(case)
    if reason is not None:
        return reason
    if languages and not set(languages) & set(case.shape.languages):
        return "language_filter", ", ".join(case.shape.languages)
    if kinds and case.kind not in kinds:
        return "kind_filter", case.kind.value
    return None


def _whole(case: Case) -> Reason | None:
    return None if case.shape.symbols else _without_kernel(case)


def _recommended(case: Case) -> Reason | None:
    if case.kind is Kind.REVERT:
        return "revert", case.kind_evidence
    if case.reverted_by is not None:
        return "reverted", f"by {case.reverted_by}"
    # A release or a mass reformat says so in its title; what else it touches does not matter.
    if case.kind is Kind.MAINTENANCE and case.shape.symbols:
        return "maintenance", case.kind_evidence
    if not case.shape.kernels or case.shape.moves_only or case.kind is Kind.MAINTENANCE:
        return _without_kernel(case)
    if case.mass:
        return "mass_edit", f"{len(case.shape.files)} files"
    return None


def _without_kernel(case: Case) -> Reason:
    roles = case.shape.roles
    if not roles:
        return "empty", "the landing changes no file"
    if case.shape.moves_only:
        return "rename_only", ""
    allowed: set[Role] = set()
    for side, name in _SIDE:
        allowed |= side
        if roles <= allowed:
            return name, ""
    if case.kind is Kind.MAINTENANCE:
        return "maintenance", case.kind_evidence
    if roles <= allowed | {Role.BUILD}:
        return "build_only", ""
    return "no_kernel_change", ""
