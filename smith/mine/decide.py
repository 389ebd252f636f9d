"""Whether a merged pull request is a candidate, and if not, why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from smith.mine.classify import Shape
from smith.mine.discover import Merged
from smith.records.candidate import RECOMMENDED_REJECTS, Flag, Kind, Role
from smith.records.config import MineConfig

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
    compiled: Collection[str] = ()
    """Languages whose kernels are compiled files."""
    backport_of: str | None = None

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What filters look at."""
        changed = {kernel.language for kernel in self.shape.kernels if kernel.code}
        flags = {
            Flag.REVERTED: self.reverted_by is not None,
            Flag.REVERT: self.kind is Kind.REVERT,
            Flag.RELAND: self.kind is Kind.RELAND,
            Flag.MAINTENANCE: self.kind is Kind.MAINTENANCE,
            Flag.MASS_EDIT: self.mass,
            Flag.HOST_ONLY: bool(self.shape.kernels) and not self.shape.code,
            Flag.TEXT_ONLY: bool(self.shape.symbols) and not self.shape.code,
            Flag.BINARY_ONLY: bool(changed) and changed <= set(self.compiled),
            Flag.NO_TESTS: not self.shape.roles & _TESTS,
            Flag.UNCERTAIN: not self.merged.pull_request.certain,
            Flag.BACKPORT: self.backport_of is not None,
        }
        return tuple(name for name, is_set in flags.items() if is_set)


@dataclass(frozen=True)
class Filters:
    """What the user wants. ``all`` drops the recommended filters: whatever changes a kernel's body is a candidate."""

    languages: frozenset[str] = frozenset()
    kinds: frozenset[Kind] = frozenset()
    reject: frozenset[Flag] = frozenset()
    """Left out besides the recommended ones."""
    allow: frozenset[Flag] = frozenset()
    """Not left out although recommended."""
    all: bool = False

    @classmethod
    def of(cls, config: MineConfig) -> Filters:
        """What ``smith.toml`` asks for."""
        return cls(
            languages=frozenset(config.languages),
            kinds=frozenset(config.kinds),
            reject=frozenset(config.reject),
            allow=frozenset(config.allow),
        )


RECOMMENDED = Filters()


def decide(case: Case, filters: Filters = RECOMMENDED) -> Reason | None:
    """None for a candidate, else the reason against it: the recommended filters first, then the user's."""
    reason = _whole(case) if filters.all else _recommended(case, filters.allow)
    if reason is not None:
        return reason
    for flag in case.flags:
        if flag in filters.reject:
            return flag.value, "asked for with --reject"
    if filters.languages and not filters.languages & set(case.shape.languages):
        return "language_filter", ", ".join(case.shape.languages)
    if filters.kinds and case.kind not in filters.kinds:
        return "kind_filter", case.kind.value
    return None


def _whole(case: Case) -> Reason | None:
    return None if case.shape.symbols else _without_kernel(case)


def _recommended(case: Case, allow: Collection[Flag]) -> Reason | None:
    details = {
        Flag.REVERT: case.kind_evidence,
        Flag.REVERTED: f"by {case.reverted_by}",
        Flag.MAINTENANCE: case.kind_evidence,
        Flag.MASS_EDIT: f"{len(case.shape.files)} files",
        Flag.BINARY_ONLY: "no source of the changed kernels is here",
    }
    flags = case.flags
    early = [Flag.REVERT, Flag.REVERTED]
    # A release or a mass reformat says so in its title; what else it touches does not matter.
    if case.shape.code:
        early.append(Flag.MAINTENANCE)
    for flag in early:
        if flag in flags and flag not in allow:
            return flag.value, details[flag]
    kernels = bool(case.shape.kernels) and not case.shape.moves_only
    if not kernels or (case.kind is Kind.MAINTENANCE and Flag.MAINTENANCE not in allow):
        return _without_kernel(case)
    for flag in RECOMMENDED_REJECTS:
        if flag in flags and flag not in allow and flag not in early:
            return flag.value, details[flag]
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
