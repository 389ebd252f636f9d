"""Grade what a run handed in once more, from its patches alone: does another machine come to the same verdicts?"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from smith.errors import BadInput, SmithError
from smith.evaluate.attempt import PATCH
from smith.evaluate.run import AttemptState, attempt_in, states_in
from smith.freeze.bundle import Store
from smith.freeze.panels import pinned_receipt
from smith.grade.devices import Devices
from smith.grade.environments import Environments
from smith.grade.grader import grade
from smith.grade.hollow import hollow
from smith.parallel import each
from smith.records.attempt import RunConfig
from smith.records.base import Record
from smith.records.grade import Grade, GradeVerdict
from smith.records.panel import PanelTask
from smith.sandbox.base import Sandbox

FOLDER = "regrades"
Step = Callable[[str, int], None]


class Speed(Record):
    """A measured speed-up with its interval."""

    ratio: float
    low: float
    high: float

    @classmethod
    def of(cls, graded: Grade) -> Speed | None:
        timing = graded.speedup
        return None if timing is None else cls(ratio=timing.geomean, low=timing.low, high=timing.high)


class Regraded(Record):
    """One attempt, before and now. ``after`` is null where it could not be graded here, and ``why`` says so."""

    task: str
    attempt: int
    before: str
    after: str | None
    speed_before: Speed | None = None
    speed_after: Speed | None = None
    why: str = ""

    @property
    def same(self) -> bool | None:
        """Whether the verdict is the same; None where nothing can be said."""
        if self.after is None or self.after == GradeVerdict.INFRA.value:
            return None
        return self.before == self.after


class RegradedRun(Record):
    """Every attempt of a run that was graded before."""

    run: str
    attempts: tuple[Regraded, ...]
    skipped: int
    """Attempts that are missing or could not be graded before."""
    same: int
    different: int
    not_graded: int


@dataclass(frozen=True)
class _Job:
    pinned: PanelTask
    state: AttemptState
    before: Grade
    patch: bytes


def new_grade(save: Path, task: str, number: int) -> Path:
    """Where the new grade of an attempt goes."""
    return save / task / f"{number:03d}.json"


def regrade(
    store: Store,
    config: RunConfig,
    sandbox: Sandbox,
    devices: Devices,
    step: Step,
    *,
    save: Path,
    evidence: Path | None = None,
    jobs: int = 1,
    only: Collection[str] = (),
) -> RegradedRun:
    """Grade every patch of a run again, against the receipts that the run was pinned to; the evidence is not touched.

    The evidence lies in the folder of the run, or in ``evidence``. New grades go into ``save``. ``only`` names tasks,
    where not all are wanted; raises :class:`BadInput` for one that the run does not have.
    """
    by_id = {task.id: task for task in config.tasks}
    for name in only:
        if name not in by_id:
            raise BadInput(f"{config.run} has no task {name}", hint=f"smith report {config.run}")
    folder = evidence or store.layout.run(config.run)
    found = [s for s in states_in(folder, config) if not only or s.task in only]
    work = [
        _Job(by_id[s.task], s, s.grade, (attempt_in(folder, s.task, s.number) / PATCH).read_bytes())
        for s in found
        if s.grade is not None and s.grade.verdict is not GradeVerdict.INFRA
    ]
    environments = Environments(store.layout.environments, store.layout.logs)

    def again(job: _Job) -> Regraded:
        try:
            after, why = _graded(job), ""
        except SmithError as error:
            after, why = None, str(error)
        return Regraded(
            task=job.state.task,
            attempt=job.state.number,
            before=job.before.verdict.value,
            after=after.verdict.value if after else None,
            speed_before=Speed.of(job.before),
            speed_after=Speed.of(after) if after else None,
            why=why or (str(after.reasons[0]) if after and after.reasons else ""),
        )

    def _graded(job: _Job) -> Grade:
        expected = pinned_receipt(store, job.pinned, job.before.device)
        bundle = store.load(job.pinned.id)
        store.require_sources(bundle)
        environment = environments.for_receipt(bundle.recipe, expected.receipt)
        name = expected.receipt.device
        with devices.bench(store, sandbox, name, purpose=f"regrade {bundle.id}") as bench:
            return grade(
                bundle,
                job.patch,
                expected,
                bench,
                environment,
                save=new_grade(save, job.pinned.id, job.state.number),
                sanitize=config.sanitize,
                emptier=hollow,
            )

    done: dict[tuple[str, int], Regraded] = {}
    for _, result in each(again, work, jobs):
        done[result.task, result.attempt] = result
        step(f"{result.task}: {result.after or 'not graded'}", 1)
    ordered = tuple(done[j.state.task, j.state.number] for j in work)
    return RegradedRun(
        run=config.run,
        attempts=ordered,
        skipped=len(found) - len(work),
        same=sum(r.same is True for r in ordered),
        different=sum(r.same is False for r in ordered),
        not_graded=sum(r.same is None for r in ordered),
    )
