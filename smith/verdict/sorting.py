"""Which tests tell, guard, are inverted or unstable, from what was seen of them so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smith.records.candidate import Kind
from smith.records.decision import PassRate
from smith.records.facts import Asked, Facts, TestFacts
from smith.records.results import Outcome
from smith.records.task import Variant
from smith.verdict import authored

SUSPECTS = 4
"""How many ids that fail on the reference are run again, to tell unstable from wrong."""


@dataclass(frozen=True)
class Sorted:
    """The ids of a bundle by what they are good for."""

    told: tuple[str, ...]
    """Fail on the base and pass on the reference in the first run."""
    fail_to_pass: tuple[str, ...]
    """Those that did so in every run."""
    pass_to_pass: tuple[str, ...]
    """Passed on both sides in every run, and are affordable."""
    flaky: tuple[str, ...]
    """Changed their mind, in alphabetical order."""
    suspects: tuple[str, ...]
    """Fail on the reference: those of them that are run again."""
    inverted: tuple[str, ...]
    """Pass on the base and fail on the reference, so far as was seen every time."""

    @property
    def kept(self) -> list[str]:
        """What still has to come out the same every time."""
        return [*self.fail_to_pass, *self.pass_to_pass]


def sort(facts: Facts) -> Sorted:
    """Sort the tests by all runs that there are."""
    asked, tests = facts.asked, facts.tests
    ran_on_both = {i: t for i, t in tests.items() if t.reference and t.nop}
    told = tuple(i for i, t in ran_on_both.items() if tells(t) and may_count(asked, i, t))
    guarding = _guards(asked, ran_on_both)
    suspects = tuple(
        i for i, t in tests.items() if t.reference and t.reference[0].failed and t.reference[0].outcome not in _SLOW
    )[:SUSPECTS]
    flaky = {i for i in told if not _same(tests[i], fails_on_base=True)}
    flaky |= {i for i in guarding if not _same(tests[i], fails_on_base=False)}
    flaky |= {i for i in suspects if any(seen.passed for seen in tests[i].reference)}
    inverted = (i for i, t in ran_on_both.items() if t.reference[0].failed and t.nop[0].passed and i not in flaky)
    return Sorted(
        told=told,
        fail_to_pass=tuple(i for i in told if i not in flaky),
        pass_to_pass=tuple(i for i in guarding if i not in flaky),
        flaky=tuple(sorted(flaky)),
        suspects=suspects,
        inverted=tuple(inverted),
    )


_SLOW = frozenset({Outcome.TIMEOUT})


def tells(test: TestFacts) -> bool:
    """Whether it passed on the reference and failed on the base when both were first run."""
    return bool(test.reference and test.nop) and test.reference[0].passed and test.nop[0].failed


def may_count(asked: Asked, test_id: str, test: TestFacts) -> bool:
    """Guards only guard: a fail-to-pass id comes from a file that the pull request changed, is an extra test, or for a
    variant is one that reaches its kernels. Where speed alone counts there is none."""
    if asked.variant is Variant.OPTIMIZE or test_id.partition("::")[0] in asked.guards:
        return False
    return asked.unsolved or not asked.own_kernels or bool(test.launches)


def by_speed(asked: Asked) -> bool:
    """Whether a task without fail-to-pass tests is judged by its speed."""
    return asked.kind in (Kind.PERF, Kind.TUNING) and not asked.variant.has_own_start


def settled(facts: Facts, found: Sorted) -> bool:
    """Whether no further run can change the verdict or its reason: nothing is left to tell apart."""
    if by_speed(facts.asked):
        return not found.kept
    if found.told:
        return not found.fail_to_pass
    # Nothing tells: only a test that looks inverted can still turn out to be unstable.
    return not set(found.suspects) & set(found.inverted)


def rates(facts: Facts, ids: Sequence[str]) -> dict[str, PassRate]:
    """How often each of ``ids`` passed on each side."""

    def share(test: TestFacts, side: str) -> str:
        return "{}/{}".format(*test.passes(side))

    return {i: PassRate(reference=share(facts.tests[i], "reference"), nop=share(facts.tests[i], "nop")) for i in ids}


def affordable(ids: Sequence[str], seconds: Mapping[str, float], budget_s: float, *, at_least: int = 3) -> list[str]:
    """The cheapest of ``ids`` that together take at most ``budget_s`` (but ``at_least`` so many), in their order.

    Every pass-to-pass id is run again in each repeat and in each grade, so what they cost together is bounded.
    """
    kept: set[str] = set()
    spent = 0.0
    for test_id in sorted(ids, key=lambda i: seconds[i]):
        spent += seconds[test_id]
        if spent > budget_s and len(kept) >= at_least:
            break
        kept.add(test_id)
    return [i for i in ids if i in kept]


def _guards(asked: Asked, tests: Mapping[str, TestFacts]) -> list[str]:
    guards = [i for i, t in tests.items() if t.reference[0].passed and t.nop[0].passed]
    if asked.variant is Variant.OPTIMIZE:
        # Nothing but these holds a speed-up to its results: cheap tests must not crowd out those that launch it.
        guards = [i for i in guards if tests[i].launches] or guards
    kept: list[str] = []
    # Extra tests have a budget of their own: they add to upstream's and never take their place.
    for extra in (False, True):
        some = [i for i in guards if authored.of(asked.authored, i) is extra]
        kept += affordable(some, {i: tests[i].seconds for i in some}, asked.budget_s / 2)
    return kept


def _same(test: TestFacts, *, fails_on_base: bool) -> bool:
    on_base = all(seen.failed if fails_on_base else seen.passed for seen in test.nop)
    return on_base and all(seen.passed for seen in test.reference)
