"""Validate one bundle on one device: run baseline and reference, several times in fresh places, and say what holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import date

from smith import __version__
from smith.environment.installer import EnvironmentFailed
from smith.errors import PatchError, RecordError
from smith.freeze.bundle import REFERENCE, Bundle
from smith.git.patches import apply
from smith.grade.launched import touched
from smith.grade.trial import Bench, base_tree, reference_tree, trial
from smith.harness.environment import TestEnvironment
from smith.records.base import Reason
from smith.records.receipt import Arm, ReasonCode, Receipt, Verdict
from smith.records.recipe import EnvironmentChoice
from smith.records.results import Failure, Outcome, TestResult
from smith.records.task import Variant
from smith.validate import authored
from smith.validate.findings import FAILING, OF_VERSIONS, Findings, affordable, cut_off, ran
from smith.validate.judge import Judge
from smith.validate.probes import try_probe
from smith.validate.select import CollectedId, choose

ALONE_LIMIT = 3
"""How many fail-to-pass ids are also run alone: each pays for importing the repository once more."""

SUSPECTS = 4
"""How many ids that fail on the reference are run again, to tell unstable from wrong."""

Builder = Callable[[EnvironmentChoice], TestEnvironment]
Step = Callable[[str], None]


class _BuildFailed(Exception):
    """A tree does not build in this environment."""


class Validation:
    """One validation of ``bundle`` on ``bench.device`` with ``repeats`` runs of each arm."""

    def __init__(
        self, bundle: Bundle, bench: Bench, *, repeats: int, builder: Builder, step: Step = lambda text: None
    ) -> None:
        self.bundle, self.bench, self.repeats = bundle, bench, repeats
        self.builder, self.step = builder, step
        self.variant = bundle.spec.variant
        self.nop_tree = base_tree(bench.store, bundle)
        try:
            self.reference_tree = reference_tree(bench.store, bundle)
            solved = apply(bench.store.scratch, bundle.spec.source.tree, bundle.reference)
            files = touched(bench.store, bundle, solved)
        except PatchError as error:
            raise RecordError(f"{bundle.path / REFERENCE}: {error}", hint="freeze the pull request again") from error
        self.judge = Judge(bundle, bench, self.nop_tree, self.reference_tree, files, step)
        self.environment: TestEnvironment | None = None
        """In which the receipt was found, once there is one."""

    def receipt(self) -> Receipt:
        """Run everything and say what was found."""
        began = time.monotonic()
        found = self._findings()
        self.environment = found.environment
        interpreter = self.bench.device.startswith("interpreter")
        not_proved = []
        if interpreter:
            not_proved.append("speed: the interpreter says nothing about it")
            not_proved.append("that the kernels compile for a GPU, or are right on one")
        if interpreter and self.variant.has_own_start and found.fail_to_pass:
            not_proved.append(
                "that the kernels which are launched do all of the work: launches are counted, not results"
            )
        if found.fail_to_pass and not interpreter:
            not_proved.append(
                "that the fail-to-pass tests reach the changed code: calls are not counted on this device"
            )
        return Receipt(
            task=self.bundle.id,
            tree=self.bundle.tree,
            device=self.bench.device,
            verdict=found.verdict,
            reasons=tuple(found.reasons),
            fail_to_pass=tuple(found.fail_to_pass),
            pass_to_pass=tuple(found.pass_to_pass),
            flaky=tuple(sorted(found.flaky)),
            base_failures=found.base_failures,
            launches=found.launches,
            timing=found.timing,
            probes=tuple(found.probes),
            arms=tuple(found.arms),
            repeats=self.repeats,
            environment=found.environment.describe() if found.environment else None,
            tried=tuple(found.tried),
            sandbox=self.bench.sandbox.name,
            not_proved=tuple(not_proved),
            smith=__version__,
            seconds=round(time.monotonic() - began, 2),
        )

    def _findings(self) -> Findings:
        """Try the environments in turn until one shows what the pull request did.

        Where none does, the first in which the reference passed anything is told of.
        """
        merged_on = date.fromisoformat(self.bundle.spec.source.merged_at[:10])
        tried: list[str] = []
        seen: dict[str, str] = {}
        best: Findings | None = None
        last = Findings().end(Verdict.UNRESOLVABLE, ReasonCode.ENVIRONMENT, "the recipe names no environment")
        for choice in self.bundle.recipe.candidates(merged_on):
            self.step(f"environment {choice.name}")
            try:
                environment = self.builder(choice)
            except EnvironmentFailed as error:
                last = Findings().end(Verdict.UNRESOLVABLE, ReasonCode.ENVIRONMENT, str(error))
                tried.append(f"{choice.name}: {error}")
                continue
            digest = environment.describe().digest
            if digest in seen:
                tried.append(f"{choice.name}: has the versions of {seen[digest]}")
                continue
            seen[digest] = choice.name
            try:
                found = self._in_environment(environment)
            except _BuildFailed as error:
                found = Findings(environment=environment).end(Verdict.UNRESOLVABLE, ReasonCode.BUILD_FAILED, str(error))
            found.tried = list(tried)
            passes = bool(found.pass_to_pass or found.fail_to_pass)
            if found.verdict is Verdict.VALID or (passes and not found.because(OF_VERSIONS)):
                return found
            if passes and best is None:
                best = found
            last = found
            tried.append(f"{choice.name}: {'; '.join(map(str, found.reasons))}")
        if best is not None:
            name = best.environment.describe().name if best.environment else ""
            best.tried = [one for one in tried if not one.startswith(f"{name}: ")]
            return best
        return last

    def _in_environment(self, environment: TestEnvironment) -> Findings:
        found = Findings(environment=environment)
        chosen, fault = self._choose(environment)
        if not chosen:
            code, detail = fault
            wrong = code in (ReasonCode.NO_TESTS, ReasonCode.EXTRA_TEST)
            verdict = Verdict.INVALID if wrong else Verdict.UNRESOLVABLE
            return found.end(verdict, code, detail)
        budget = self.bundle.selection.budget_s
        self.step("reference 1")
        first = self._arm("reference", 1, environment, chosen, found, stop_after_s=budget)
        bad = authored.faulty(self.bundle.selection, first, ())
        if bad:
            return found.end(Verdict.INVALID, ReasonCode.EXTRA_TEST, bad)
        passing = [i for i in chosen if first[i].outcome is Outcome.PASSED]
        if not passing:
            return self.judge.nothing_passes(found, first)
        self.step("nop 1")
        # What the reference fails is run on the base too: a test that only the base passes shows inverted sides.
        second = self._arm("nop", 1, environment, [i for i in chosen if ran(first[i])], found)
        found.fail_to_pass = [i for i in passing if second[i].outcome in FAILING and self.judge.may_count(first[i])]
        guards = [i for i in passing if second[i].outcome is Outcome.PASSED]
        if self.variant is Variant.OPTIMIZE:
            # Nothing but these holds a speed-up to its results: cheap tests must not crowd out those that launch it.
            guards = [i for i in guards if self.judge.launches([first[i]])] or guards
        # Extra tests have a budget of their own: they add to upstream's and never take their place.
        for extra in (False, True):
            some = [i for i in guards if authored.of(self.bundle.selection, i) is extra]
            found.pass_to_pass += affordable(some, {i: first[i].seconds for i in some}, budget / 2)
        inverted = [
            i for i in chosen if ran(first[i]) and first[i].outcome in FAILING and second[i].outcome is Outcome.PASSED
        ]
        suspects = [i for i in chosen if first[i].outcome in FAILING and first[i].outcome is not Outcome.TIMEOUT]
        self._repeat(environment, found, suspects[:SUSPECTS])
        found.base_failures = {i: second[i].failure or Failure.OTHER for i in found.fail_to_pass}
        found.base_results = {i: second[i] for i in found.fail_to_pass}
        found.launches = self.judge.launches([first[i] for i in found.fail_to_pass or self.judge.guarding(found)])
        bad = authored.faulty(self.bundle.selection, first, found.flaky)
        if bad:
            return found.end(Verdict.INVALID, ReasonCode.EXTRA_TEST, bad)
        judged = self.judge.judge(found, first, inverted)
        if judged.verdict is Verdict.VALID and self.bundle.probes:
            self._probe(judged)
        return judged

    def _probe(self, found: Findings) -> None:
        """Try the bundle's wrong and alternative solutions: tests that tell them apart wrongly are no tests."""
        assert found.environment is not None
        ids = [*found.fail_to_pass, *found.pass_to_pass]
        for probe in self.bundle.probes:
            self.step(f"probe {probe.name}")
            result = try_probe(self.bench, self.bundle, found.environment, probe, ids)
            found.probes.append(result)
            if not result.as_expected:
                code = ReasonCode.WRONG_PASSES if probe.kind == "wrong" else ReasonCode.ALTERNATIVE_FAILS
                found.end(Verdict.INVALID, code, f"{probe.name}: {result.detail}")
                return

    # -- selecting ----------------------------------------------------------------------------------------------

    def _choose(self, environment: TestEnvironment) -> tuple[list[str], tuple[ReasonCode, str]]:
        """The ids to run, or why there are none."""
        selection = self.bundle.selection
        self.step("collecting")
        with trial(self.bench, self.bundle, environment, self.reference_tree) as place:
            if place.build_error:
                raise _BuildFailed(f"the reference does not build: {place.build_error}")
            collected = place.collect([*selection.files, *selection.authored, *selection.guards])
        items = [CollectedId(i.id, i.function, i.size) for i in collected.ids]
        fault = authored.uncollected(selection, [i.id for i in items], collected.errors)
        if fault:
            return [], (ReasonCode.EXTRA_TEST, fault)
        if selection.only:
            known = {i.id for i in items}
            extra = [i.id for i in items if authored.of(selection, i.id)]
            chosen = [*(i for i in selection.only if i in known), *extra]
            return chosen, (ReasonCode.NO_TESTS, "none of the ids that the bundle names exists")
        if not items:
            errors = "; ".join(f"{file}: {message}" for file, message in sorted(collected.errors.items()))
            if errors:
                return [], (ReasonCode.ENVIRONMENT, f"the reference's tests cannot be collected: {errors}"[:500])
            return [], (ReasonCode.NO_TESTS, "the test files hold no tests")
        new: Collection[str] = ()
        changed = set(selection.changed_tests)
        crowded = sum(1 for i in items if i.function in changed) > selection.max_ids
        if crowded:
            new = {i.id for i in items} - self._ids_before(environment)
        chosen = []
        for file in [*selection.files, *selection.authored, *selection.guards]:
            members = [i for i in items if i.id.split("::", 1)[0] == file]
            limit = max(1, selection.max_ids // 4) if file in selection.guards else selection.max_ids
            chosen += [i.id for i in choose(members, new=new, changed=changed, limit=limit)]
        return chosen, (ReasonCode.NO_TESTS, "")

    def _ids_before(self, environment: TestEnvironment) -> set[str]:
        """Ids that the base's own tests have."""
        self.step("collecting the base's own tests")
        with trial(self.bench, self.bundle, environment, self.bundle.spec.source.tree) as place:
            present = [f for f in self.bundle.selection.files if (place.place.source / f).is_file()]
            if place.build_error or not present:
                return set()
            return {i.id for i in place.collect(present).ids}

    # -- running ------------------------------------------------------------------------------------------------

    def _arm(
        self,
        arm: str,
        repeat: int,
        environment: TestEnvironment,
        ids: Sequence[str],
        found: Findings,
        *,
        stop_after_s: float | None = None,
        alone: Collection[str] = (),
    ) -> dict[str, TestResult]:
        """One run of one arm in a fresh place; every id of ``ids`` has a result."""
        tree = self.nop_tree if arm == "nop" else self.reference_tree
        began = time.monotonic()
        with trial(self.bench, self.bundle, environment, tree) as place:
            if place.build_error:
                raise _BuildFailed(f"the {'base' if arm == 'nop' else 'reference'} does not build: {place.build_error}")
            results = place.run(ids, stop_after_s=stop_after_s, alone=alone).by_id()
            if lost := cut_off(ids, results):
                results |= place.run(lost, alone=lost).by_id()
        complete = {i: results.get(i, TestResult(id=i, outcome=Outcome.MISSING)) for i in ids}
        outcomes = [r.outcome for r in complete.values()]
        passed = outcomes.count(Outcome.PASSED)
        failed = sum(1 for o in outcomes if o in FAILING)
        found.arms.append(
            Arm(
                arm=arm,
                repeat=repeat,
                passed=passed,
                failed=failed,
                other=len(outcomes) - passed - failed,
                seconds=round(time.monotonic() - began, 2),
            )
        )
        return complete

    def _repeat(self, environment: TestEnvironment, found: Findings, suspects: Sequence[str]) -> None:
        """Run both arms again in fresh places and quarantine every id whose outcome changes.

        ``suspects`` failed on the reference the first time: one that passes later is unstable and not wrong.

        The second time the order is reversed, so that a test which leans on another shows; the third time the first
        few fail-to-pass ids are run in a process of their own each.
        """
        for repeat in range(2, self.repeats + 1):
            kept = [*found.fail_to_pass, *found.pass_to_pass]
            if not kept:
                return
            order = list(reversed(kept)) if repeat % 2 == 0 else kept
            alone = found.fail_to_pass[:ALONE_LIMIT] if repeat == 3 else ()
            for arm in ("reference", "nop"):
                self.step(f"{arm} {repeat}")
                ids = [*order, *suspects] if arm == "reference" else order
                results = self._arm(arm, repeat, environment, ids, found, alone=alone)
                if arm == "reference":
                    found.flaky |= {i for i in suspects if results[i].outcome is Outcome.PASSED}
                for test_id in kept:
                    passed = results[test_id].outcome is Outcome.PASSED
                    failed = results[test_id].outcome in FAILING
                    right = failed if arm == "nop" and test_id in found.fail_to_pass else passed
                    if not right:
                        found.flaky.add(test_id)
            found.fail_to_pass = [i for i in found.fail_to_pass if i not in found.flaky]
            found.pass_to_pass = [i for i in found.pass_to_pass if i not in found.flaky]


def refused(bundle: Bundle, device: str, detail: str, sandbox: str) -> Receipt:
    """The receipt of a task whose needs this machine or version lacks: nothing was run."""
    return Receipt(
        task=bundle.id,
        tree=bundle.tree,
        device=device,
        verdict=Verdict.UNRESOLVABLE,
        reasons=(Reason(code=ReasonCode.NEEDS_DEVICE.value, detail=detail),),
        not_proved=("anything: nothing was run",),
        sandbox=sandbox,
        smith=__version__,
    )
