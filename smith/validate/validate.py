"""Validate one bundle on one device: run baseline and reference, several times in fresh places, and say what holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import date

from smith import __version__
from smith.environment.installer import EnvironmentFailed
from smith.errors import PatchError, RecordError
from smith.freeze.bundle import REFERENCE, Bundle
from smith.git.patches import apply
from smith.gpus.base import is_gpu
from smith.grade.devices import hardware_of, held_until_now
from smith.grade.launched import touched
from smith.grade.timed_processes import CannotTime
from smith.grade.timing import TooNoisy, measure
from smith.grade.trial import Bench, base_tree, reference_tree, trial
from smith.harness.environment import TestEnvironment
from smith.harness.hardware import Unfit
from smith.parallel import Slots
from smith.records.base import Reason
from smith.records.compiled import TargetReport
from smith.records.receipt import ReasonCode, Receipt, Verdict
from smith.records.recipe import EnvironmentChoice
from smith.records.results import Outcome, TestResult
from smith.records.sanitizer import SanitizerReport
from smith.records.workload import Workload
from smith.validate.arms import Arms, Leg, Ran
from smith.validate.findings import OF_VERSIONS, Findings, cut_off
from smith.validate.gate import Captured, Gate
from smith.validate.gate import not_proved as of_targets
from smith.validate.gate_files import file_reports, joined
from smith.validate.not_proved import not_proved
from smith.validate.probes import try_probe
from smith.validate.recorder import Recorder
from smith.validate.sanitize import sanitize
from smith.validate.select import CollectedId, choose
from smith.validate.toolchain import toolchain
from smith.validate.workloads import record
from smith.verdict import authored
from smith.verdict.decide import Decision

Builder = Callable[[EnvironmentChoice], TestEnvironment]
Step = Callable[[str], None]


class _BuildFailed(Exception):
    """A tree does not build in this environment."""


class Validation:
    """One validation of ``bundle`` on ``bench.device`` with ``repeats`` runs of each arm."""

    def __init__(
        self,
        bundle: Bundle,
        bench: Bench,
        *,
        repeats: int,
        builder: Builder,
        step: Step = lambda text: None,
        sanitizer: bool = False,
        gate: Gate | None = None,
        recording: bool = False,
        slots: Slots | None = None,
    ) -> None:
        self.bundle, self.bench, self.repeats, self.sanitizer = bundle, bench, repeats, sanitizer
        self.builder, self.step, self.gate = builder, step, gate
        self.recording = recording
        """Whether the calls of the tests are recorded where there is no other workload to time."""
        self.slots = None if is_gpu(bench.device) else slots
        """Free ones let runs of both arms go side by side; what holds a GPU is the only one on it."""
        self.workload: Workload | None = None
        """What was recorded, where it was timed."""
        self.nop_tree = base_tree(bench.store, bundle)
        try:
            self.reference_tree = reference_tree(bench.store, bundle)
            solved = apply(bench.store.scratch, bundle.spec.source.tree, bundle.reference)
            files = touched(bench.store, bundle, solved)
        except PatchError as error:
            raise RecordError(f"{bundle.path / REFERENCE}: {error}", hint="freeze the pull request again") from error
        self.solved_files = files
        self.environment: TestEnvironment | None = None
        """In which the receipt was found, once there is one."""

    def receipt(self) -> Receipt:
        """Run everything and say what was found."""
        began = time.monotonic()
        found = self._findings()
        self.environment = found.environment
        self._compile(found)
        if self.sanitizer and self.bench.device.startswith("interpreter"):
            found.sanitizer = self._watched(found)
        if found.hardware:
            found.hardware = held_until_now(self.bench, found.hardware)
        return found.receipt(
            self.bundle,
            self.bench.device,
            repeats=self.repeats,
            toolchain=toolchain(self.bundle.recipe),
            sandbox=self.bench.sandbox.name,
            not_proved=tuple(not_proved(found, self.bundle.spec, self.bench.device)),
            seconds=round(time.monotonic() - began, 2),
        )

    def _watched(self, found: Findings) -> SanitizerReport | None:
        """What the sanitizer sees on the tests that count; None where there are none."""
        ids = [*found.fail_to_pass, *found.pass_to_pass]
        if not ids or found.environment is None:
            return None
        trees = (self.reference_tree, self.nop_tree)
        return sanitize(self.bench, self.bundle, found.environment, trees, ids, self.step)

    def _compile(self, found: Findings) -> None:
        """Compile what was captured in the environment that the findings are of."""
        if self.gate is None or found.environment is None:
            return
        self.step(f"compiling for {', '.join(self.gate.targets)}")
        launched = {}
        if self.bench.device.startswith("interpreter"):  # only there launches are captured
            trees = {"base": self.nop_tree, "reference": self.reference_tree}
            launched = self.gate.reports(self.bench, self.bundle, found.environment, trees, found.captured)
        files = file_reports(self.bench, self.bundle, found.environment, self.gate.targets, self.gate.jobs)
        found.targets = joined(launched, files)

    def _findings(self) -> Findings:
        """Try the environments in turn until one shows what the pull request did.

        Where none does, the first in which the reference passed anything is told of.
        """
        merged_on = date.fromisoformat(self.bundle.spec.source.merged_at[:10])
        tried: list[str] = []
        seen: dict[str, str] = {}
        best: Findings | None = None
        last = self._stopped(Findings(), ReasonCode.ENVIRONMENT, "the recipe names no environment")
        for choice in self.bundle.recipe.candidates(merged_on):
            self.step(f"environment {choice.name}")
            try:
                environment = self.builder(choice)
            except EnvironmentFailed as error:
                last = self._stopped(Findings(), ReasonCode.ENVIRONMENT, str(error))
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
                found = self._stopped(Findings(environment=environment), ReasonCode.BUILD_FAILED, str(error))
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

    def _recorder(self) -> Recorder:
        return Recorder.of(self.bundle, self.bench.device, self.solved_files)

    def _stopped(self, found: Findings, code: ReasonCode, detail: str) -> Findings:
        """Nothing could be run, for this reason."""
        facts = self._recorder().facts(stopped=Reason(code=code.value, detail=detail))
        found.decide(facts, self.bench.device)
        return found

    def _in_environment(self, environment: TestEnvironment) -> Findings:
        found = Findings(environment=environment)
        stands_on = hardware_of(self.bench, self.bundle, environment)
        if isinstance(stands_on, Unfit):
            return self._stopped(found, ReasonCode.NEEDS_DEVICE, stands_on.reason)
        found.hardware = stands_on
        chosen, fault = self._choose(environment)
        if not chosen:
            return self._stopped(found, *fault)
        seen = self._recorder()
        arms = Arms(lambda leg: self._arm(environment, leg), seen, repeats=self.repeats, slots=self.slots)
        found.arms, found.captured = arms.run(chosen), arms.captured
        decision = found.decide(seen.facts(), self.bench.device)
        if self.recording and found.because({ReasonCode.NEEDS_WORKLOAD}) and not seen.asked.workloads:
            decision = self._record(environment, found, seen) or decision
        if decision.wants_timing:
            self._time(environment, found, seen)
        if found.verdict is Verdict.VALID and self.bundle.probes:
            self._probe(found)
        return found

    def _record(self, environment: TestEnvironment, found: Findings, seen: Recorder) -> Decision | None:
        """Record calls to be timed; what follows where there are any."""
        self.workload = record(self.bench, self.bundle, environment, found, self.step)
        if not self.workload.calls:
            return None
        seen.asked = seen.asked.model_copy(update={"workloads": True})
        return found.decide(seen.facts(), self.bench.device)

    def _time(self, environment: TestEnvironment, found: Findings, record: Recorder) -> None:
        self.step("timing")
        why, noisy = "", False
        try:
            found.timing = measure(
                self.bench, self.bundle, environment, self.nop_tree, self.reference_tree, self.workload
            )
        except CannotTime as error:
            why, noisy = str(error), isinstance(error, TooNoisy)
        found.decide(record.facts(cannot_time=why, noisy=noisy), self.bench.device)

    def _probe(self, found: Findings) -> None:
        """Try the bundle's wrong and alternative solutions: tests that tell them apart wrongly are no tests."""
        assert found.environment is not None
        ids = [*found.fail_to_pass, *found.pass_to_pass]
        for probe in self.bundle.probes:
            self.step(f"probe {probe.name}")
            result = try_probe(self.bench, self.bundle, found.environment, probe, ids)
            found.probes.append(result)
            if not result.as_expected:
                break
        assert found.facts is not None
        found.decide(found.facts, self.bench.device)

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
        fault = authored.uncollected(selection.authored, [i.id for i in items], collected.errors)
        if fault:
            return [], (ReasonCode.EXTRA_TEST, fault)
        if selection.only:
            known = {i.id for i in items}
            extra = [i.id for i in items if authored.of(selection.authored, i.id)]
            chosen = [*(i for i in selection.only if i in known), *extra]
            return chosen, (ReasonCode.NO_TESTS, "none of the ids that the bundle names exists")
        if not items:
            errors = "; ".join(f"{file}: {message}" for file, message in sorted(collected.errors.items()))
            if errors:
                return [], (ReasonCode.ENVIRONMENT, f"the reference's tests cannot be collected: {errors}"[:500])
            if not collected.complete:
                why = collected.note or collected.ending
                return [], (ReasonCode.ENVIRONMENT, f"collecting the reference's tests broke off: {why}"[:500])
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

    def _arm(self, environment: TestEnvironment, leg: Leg) -> Ran:
        """One run of one arm in a fresh place, in any thread. Both arms of a repeat share a seed."""
        self.step(f"{leg.arm} {leg.repeat}")
        tree = self.nop_tree if leg.arm == "nop" else self.reference_tree
        began = time.monotonic()
        with trial(self.bench, self.bundle, environment, tree) as place:
            if place.build_error:
                side = "base" if leg.arm == "nop" else "reference"
                raise _BuildFailed(f"the {side} does not build: {place.build_error}")
            capture = self.gate.wanted(self.bundle) if self.gate is not None and leg.repeat == 1 else None
            captured = Captured()
            run = place.run(leg.ids, stop_after_s=leg.stop_after_s, alone=leg.alone, seed=leg.seed, capture=capture)
            captured.take(run)
            results = run.by_id()
            if lost := cut_off(leg.ids, results):
                run = place.run(lost, alone=lost, seed=leg.seed, capture=capture)
                captured.take(run)
                results |= run.by_id()
        complete = {i: results.get(i, TestResult(id=i, outcome=Outcome.MISSING)) for i in leg.ids}
        return Ran(complete, round(time.monotonic() - began, 2), alone=len({*leg.alone, *lost}), captured=captured)


def refused(
    bundle: Bundle, device: str, detail: str, sandbox: str, targets: Mapping[str, TargetReport] | None = None
) -> Receipt:
    """The receipt of a task whose needs this machine or version lacks: nothing was run. What could be done all the same
    is that its changed files of device code were compiled (``targets``)."""
    reason = Reason(code=ReasonCode.NEEDS_DEVICE.value, detail=detail)
    return Receipt(
        task=bundle.id,
        tree=bundle.tree,
        device=device,
        verdict=Verdict.UNRESOLVABLE,
        reasons=(reason,),
        targets=dict(targets or {}),
        not_proved=("anything: nothing was run", *(of_targets(targets) if targets else ())),
        sandbox=sandbox,
        smith=__version__,
        facts=Recorder.of(bundle, device, ()).facts(stopped=reason),
    )
