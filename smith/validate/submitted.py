"""What a submission launches, compiled for GPUs that need not be here: beside its grade, never part of its verdict.

The launches are captured in a run of their own, so that the graded run is the same with and without. Nothing is taken
from what was compiled before, and nothing is kept: a submission's code runs where keys and answers come from, and must
not be able to put its own in the place of the reference's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smith.device.interpreter.target import find_target
from smith.freeze.bundle import Bundle
from smith.grade.trial import Bench, graded_tree, trial
from smith.harness.compiling import CompiledSide
from smith.harness.compiling_files import find_clang
from smith.harness.environment import TestEnvironment
from smith.records.compiled import CompiledFile, Launch, TargetReport
from smith.validate import gate_files
from smith.validate.gate import Captured, Gate, report


@dataclass(frozen=True)
class OfSubmission:
    """Compiles a submission for ``targets`` with at most ``jobs`` processes at a time."""

    targets: tuple[str, ...]
    jobs: int

    def __call__(
        self, bench: Bench, bundle: Bundle, environment: TestEnvironment, submission: str, ids: Sequence[str]
    ) -> dict[str, TargetReport]:
        """What each target gives for the tree ``submission`` (without hidden tests) while the tests ``ids`` run."""
        launched: dict[str, TargetReport] = {}
        if bench.device.startswith("interpreter"):  # only there launches are captured
            launched = self._launches(bench, bundle, environment, submission, ids)
        return _labelled(gate_files.joined(launched, self._files(bench, bundle, environment, submission)))

    def _launches(
        self, bench: Bench, bundle: Bundle, environment: TestEnvironment, submission: str, ids: Sequence[str]
    ) -> dict[str, TargetReport]:
        captured, wanted = Captured(), Gate(self.targets, self.jobs).wanted(bundle)
        with trial(bench, bundle, environment, graded_tree(bench.store, bundle, submission)) as place:
            captured.take(place.run(ids, capture=wanted))
            launches = list(captured.launches.values())
            known: dict[str, list[str]] = {target: [] for target in self.targets}
            done = place.compile(launches, self.targets, known, self.jobs) if launches else CompiledSide()
        return {target: self._report(target, launches, captured.missed, done) for target in self.targets}

    def _report(self, target: str, launches: Sequence[Launch], missed: int, done: CompiledSide) -> TargetReport:
        return report(
            {"reference": launches, "base": []},
            {"reference": done.answers.get(target, []), "base": []},
            compiler=done.triton,
            missed=missed,
            note=done.note,
            caveat=done.caveat if find_target(target).backend == "hip" else "",
        )

    def _files(
        self, bench: Bench, bundle: Bundle, environment: TestEnvironment, submission: str
    ) -> dict[str, TargetReport]:
        """The files of device code that the reference changes, as the submission has them."""
        files = gate_files.device_files(bundle)
        if not files:
            return {}
        able = [target for target in self.targets if find_target(target).backend == "hip"]
        done = gate_files.compiled_side(bench, bundle, environment, submission, files, able, self.jobs, find_clang())
        nothing: list[CompiledFile] = []
        reports = {}
        for target in self.targets:
            answers = done.answers.get(target, gate_files.elsewhere(target, files))
            reports[target] = gate_files.report({"reference": answers, "base": nothing}, done.compiler)
        return reports


def _labelled(reports: Mapping[str, TargetReport]) -> dict[str, TargetReport]:
    """The same with the side named as what it is."""
    found = {}
    for target, one in reports.items():
        files = one.files
        if files is not None:
            mine = tuple(file.model_copy(update={"side": "submission"}) for file in files.files)
            files = files.model_copy(update={"files": mine})
        failures = tuple(failure.model_copy(update={"side": "submission"}) for failure in one.failures)
        found[target] = one.model_copy(update={"files": files, "failures": failures})
    return found
