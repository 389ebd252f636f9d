"""The compile gate: launches captured while the tests ran are compiled for GPUs that need not be here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from smith.device.interpreter.target import TARGETS, UnknownTarget, find_target
from smith.errors import BadInput
from smith.freeze.bundle import Bundle
from smith.grade.trial import Bench, trial
from smith.harness.environment import TestEnvironment
from smith.harness.run import Capture
from smith.records.compiled import (
    CompiledLaunch,
    FailedLaunches,
    KernelFacts,
    KernelReport,
    Launch,
    SideFacts,
    TargetReport,
)
from smith.records.compiled_files import FileReports
from smith.records.results import TestRun
from smith.validate.compiled import CompiledBefore

MOST_FAILURES = 40
"""Kinds of failure that a report names for a target."""


def parse_targets(text: str | None) -> tuple[str, ...]:
    """The targets in ``gfx942,gfx950``, each once. Raises :class:`BadInput` for one that is not known."""
    names = [name.strip() for name in (text or "").split(",")]
    for name in names:
        try:
            find_target(name) if name or text else None
        except UnknownTarget as error:
            raise BadInput(f"--targets {text}: no target {name!r}", hint=f"known: {', '.join(TARGETS)}") from error
    return tuple(dict.fromkeys(name for name in names if name))


@dataclass
class Captured:
    """Distinct launches of one side, as they come in."""

    launches: dict[str, Launch] = field(default_factory=dict)
    missed: int = 0

    def take(self, run: TestRun) -> None:
        for launch in run.captured:
            self.launches.setdefault(launch.key, launch)
        self.missed += run.uncaptured

    def join(self, other: Captured) -> None:
        """Take in what another run captured."""
        for key, launch in other.launches.items():
            self.launches.setdefault(key, launch)
        self.missed += other.missed


@dataclass(frozen=True)
class Gate:
    """Compiles for ``targets`` with at most ``jobs`` processes at a time."""

    targets: tuple[str, ...]
    jobs: int

    def wanted(self, bundle: Bundle) -> Capture:
        """What is to be captured: kernels of the tree, not those that a hidden test brings along."""
        return Capture(bundle.selection.places)

    def reports(
        self,
        bench: Bench,
        bundle: Bundle,
        environment: TestEnvironment,
        trees: Mapping[str, str],
        captured: Mapping[str, Captured],
    ) -> dict[str, TargetReport]:
        """What each target gives. ``trees`` and ``captured`` have the sides ``base`` and ``reference``."""
        before = CompiledBefore(bench.store.layout.compiled, bundle.spec.source.repo)
        answers: dict[str, dict[str, list[CompiledLaunch]]] = {}
        compiler = note = caveat = ""
        for side in ("reference", "base"):
            launches = list(captured[side].launches.values())
            answers[side] = {target: [] for target in self.targets}
            if not launches:
                continue
            with trial(bench, bundle, environment, trees[side]) as place:
                known = before.keys(launches, self.targets)
                done = place.compile(launches, self.targets, known, self.jobs)
            compiler, note, caveat = compiler or done.triton, note or done.note, caveat or done.caveat
            answers[side] = before.complete(launches, done.answers)
        return {
            target: report(
                {side: list(captured[side].launches.values()) for side in captured},
                {side: answers[side][target] for side in answers},
                compiler=compiler,
                missed=sum(one.missed for one in captured.values()),
                note=note,
                caveat=caveat if find_target(target).backend == "hip" else "",
            )
            for target in self.targets
        }


def report(
    launches: Mapping[str, Sequence[Launch]],
    answers: Mapping[str, Sequence[CompiledLaunch]],
    *,
    compiler: str,
    missed: int,
    note: str,
    caveat: str = "",
) -> TargetReport:
    """One target's report, from the answers of both sides: what it is about is the side ``reference``."""
    reference = answers["reference"]
    failures = [answer.failure for answer in reference if answer.failure is not None]
    reason = note
    if any(failure.says_something for failure in failures):
        verdict = "failed"
    elif failures or not reference:
        verdict = "not_compilable"
        reason = note or ("" if reference else "no launch of a kernel was captured")
    else:
        verdict = "compiled"
    sides = {side: _by_kernel(launches[side], answers[side]) for side in answers}
    return TargetReport(
        verdict=verdict,
        launches=len(reference),
        compiled=sum(answer.failure is None for answer in reference),
        base_launches=len(answers["base"]),
        base_compiled=sum(answer.failure is None for answer in answers["base"]),
        not_captured=missed,
        failures=_failures(launches, answers),
        dropped_options=tuple(sorted({name for some in answers.values() for a in some for name in a.dropped})),
        compiler=compiler,
        caveat=caveat,
        reason=reason,
        kernels=tuple(
            KernelReport(symbol=symbol, baseline=sides["base"].get(symbol), **facts.model_dump())
            for symbol, facts in sorted(sides["reference"].items())
        ),
    )


def _by_kernel(launches: Sequence[Launch], answers: Sequence[CompiledLaunch]) -> dict[str, SideFacts]:
    by_kernel: dict[str, list[CompiledLaunch]] = {}
    for launch, answer in zip(launches, answers, strict=True):
        by_kernel.setdefault(launch.kernel, []).append(answer)
    return {
        kernel: SideFacts(
            launches=len(some),
            failed=sum(answer.failure is not None for answer in some),
            **worst([answer.facts for answer in some if answer.facts is not None]),
        )
        for kernel, some in by_kernel.items()
    }


def worst(facts: Sequence[KernelFacts]) -> dict[str, int]:
    """Of each figure the largest over the launches of a kernel, and of occupancy the smallest."""
    found: dict[str, int] = {}
    for name in KernelFacts.model_fields:
        values = [value for one in facts if (value := getattr(one, name)) is not None]
        if values:
            found[name] = min(values) if name == "occupancy" else max(values)
    return found


def _failures(
    launches: Mapping[str, Sequence[Launch]], answers: Mapping[str, Sequence[CompiledLaunch]]
) -> tuple[FailedLaunches, ...]:
    """Failures of both sides, those of one kernel and kind together, with the words of the first."""
    counts: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], CompiledLaunch] = {}
    for side in ("reference", "base"):
        for launch, answer in zip(launches[side], answers[side], strict=True):
            if answer.failure is not None:
                kind = (side, launch.kernel, answer.failure.value)
                counts[kind] += 1
                first.setdefault(kind, answer)
    return tuple(
        FailedLaunches(
            side="base" if side == "base" else "reference",
            symbol=symbol,
            code=first[side, symbol, code].failure,
            detail=first[side, symbol, code].detail,
            launches=count,
        )
        for (side, symbol, code), count in list(counts.items())[:MOST_FAILURES]
    )


def not_proved(targets: Mapping[str, TargetReport]) -> list[str]:
    """What a receipt of the interpreter does not say about GPUs, in words."""
    proved = [target for target, found in targets.items() if found.verdict == "compiled" and found.launches]
    if not targets:
        return ["that the kernels compile for a GPU, or are right on one"]
    other = f" other than {_listed(proved)}" if proved else ""
    words = [f"that the kernels compile for a GPU{other}, or are right on one"]
    if proved:
        most = max(targets[target].launches for target in proved)
        words.append(f"that launches compile which no test made: {most} were captured and compiled")
    for target, found in targets.items():
        words += [_of_files(target, found.files)] if found.files is not None else []
        if found.files is not None and not found.launches:
            continue
        missing = found.launches - found.compiled
        if found.verdict == "failed":
            words.append(f"that the kernels compile for {target}: {missing} of {found.launches} launches do not")
        elif found.verdict == "not_compilable":
            why = found.reason or f"{missing} of {found.launches} launches could not be tried here"
            words.append(f"that the kernels compile for {target}: {why}")
    return words


def _of_files(target: str, found: FileReports) -> str:
    mine = [file for file in found.files if file.side == "reference"]
    good = sum(file.failure is None for file in mine)
    how = " with stand-in headers" if found.stand_ins else ""
    return (
        f"that the kernels in C++ compile for {target} as the project builds them: {good} of {len(mine)} changed files "
        f"were compiled one by one{how}, and no launch was"
    )


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
