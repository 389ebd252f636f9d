"""The compile gate for device code in C++: the changed files, one by one, without any launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smith.device.interpreter.target import find_target
from smith.freeze.bundle import Bundle
from smith.git.patches import apply
from smith.git.trees import materialise
from smith.grade.quiet import shared
from smith.grade.trial import Bench
from smith.harness.compiling_files import CompiledFiles, compile_files, find_clang
from smith.harness.environment import TestEnvironment
from smith.harness.place import Place
from smith.harness.stage import COMPILE, Stage
from smith.records.compiled import CompiledFile, KernelReport, SideFacts, TargetReport
from smith.records.compiled_files import FileFailure, FileReport, FileReports

LANGUAGES = frozenset({"hip", "cuda", "ck", "cute"})
"""Of kernels in C++ that a GPU runs."""


def device_files(bundle: Bundle) -> list[str]:
    """The files in which the reference changed such kernels."""
    return sorted({kernel.path for kernel in bundle.spec.kernels if kernel.language in LANGUAGES})


def file_reports(
    bench: Bench, bundle: Bundle, environment: TestEnvironment, targets: Sequence[str], jobs: int
) -> dict[str, TargetReport]:
    """What each target gives; nothing where the task has no such files."""
    files = device_files(bundle)
    if not files:
        return {}
    clang = find_clang()
    able = [target for target in targets if find_target(target).backend == "hip"]
    sides = {
        side: compiled_side(bench, bundle, environment, tree, files, able, jobs, clang)
        for side, tree in (
            ("base", bundle.spec.source.tree),
            ("reference", apply(bench.store.scratch, bundle.spec.source.tree, bundle.reference)),
        )
    }
    reports = {}
    for target in targets:
        answers = {side: done.answers.get(target, elsewhere(target, files)) for side, done in sides.items()}
        reports[target] = report(answers, sides["reference"].compiler)
    return reports


def compiled_side(
    bench: Bench,
    bundle: Bundle,
    environment: TestEnvironment,
    tree: str,
    files: Sequence[str],
    targets: Sequence[str],
    jobs: int,
    clang: str | None,
) -> CompiledFiles:
    """Both sides are compiled as they are frozen: no build of the recipe, which would need the GPU's own tools."""
    with Place.create(bench.store.layout.work) as place:
        materialise(bench.store.scratch, tree, place.source)
        there = [path for path in files if (place.source / path).is_file()]
        if not there or not targets:
            return CompiledFiles()
        stage = Stage(bench.sandbox, place, environment, bundle.recipe, COMPILE)
        with shared(bench.store.layout.quiet):
            return compile_files(stage, there, targets, jobs, clang=clang)


def elsewhere(target: str, files: Sequence[str]) -> list[CompiledFile]:
    if find_target(target).backend == "hip":
        return []  # the side has none of the files
    why = "files in C++ are compiled for AMD targets only"
    return [CompiledFile(path=path, failure=FileFailure.NOT_TRIED, detail=why) for path in files]


def report(answers: Mapping[str, Sequence[CompiledFile]], compiler: str) -> TargetReport:
    """One target's report, from the answers of both sides."""
    reference = answers["reference"]
    failures = [answer.failure for answer in reference if answer.failure is not None]
    verdict = "compiled"
    if any(failure.says_something for failure in failures):
        verdict = "failed"
    elif failures or not reference:
        verdict = "not_compilable"
    sides = {side: _kernels(some) for side, some in answers.items()}
    told = FileReports(
        compiler=compiler,
        stand_ins=any(answer.stand_ins for some in answers.values() for answer in some),
        files=tuple(
            FileReport(
                side="base" if side == "base" else "reference",
                path=answer.path,
                kernels=len(answer.kernels),
                failure=answer.failure,
                detail=answer.detail,
            )
            for side in ("reference", "base")
            for answer in answers[side]
        ),
    )
    return TargetReport.model_validate(
        {
            "verdict": verdict,
            "launches": 0,
            "compiled": 0,
            "files": told,
            "reason": "" if reference else "the reference has none of the changed files",
            "kernels": tuple(
                KernelReport(symbol=symbol, baseline=sides["base"].get(symbol), **facts.model_dump())
                for symbol, facts in sorted(sides["reference"].items())
            ),
        }
    )


def _kernels(answers: Sequence[CompiledFile]) -> dict[str, SideFacts]:
    return {
        f"{answer.path}::{name}": SideFacts(**facts.model_dump())
        for answer in answers
        for name, facts in answer.kernels.items()
    }


_WORST = ("compiled", "not_compilable", "failed")


def joined(launches: Mapping[str, TargetReport], files: Mapping[str, TargetReport]) -> dict[str, TargetReport]:
    """Reports of launches with those of files: of the two verdicts the worse."""
    found = {**launches, **files}
    for target in launches.keys() & files.keys():
        one, other = launches[target], files[target]
        if not one.launches and not one.base_launches and not one.not_captured:
            continue  # no kernel of another language was launched: the files are all there is
        found[target] = one.model_copy(
            update={
                "verdict": max(one.verdict, other.verdict, key=_WORST.index),
                "files": other.files,
                "kernels": (*one.kernels, *other.kernels),
            }
        )
    return found
