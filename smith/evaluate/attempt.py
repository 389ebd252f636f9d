"""One attempt: a fresh workspace, the agent, the patch taken from the workspace, the grade."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smith.errors import BudgetRefused, RecordError
from smith.evaluate.access import ModelAccess
from smith.evaluate.advice import CITED, Advice, cited_in
from smith.evaluate.agents import Agent, Desk, Ending, Workspace
from smith.evaluate.spending import Spending
from smith.freeze.bundle import Bundle, Store
from smith.freeze.panels import StoredReceipt
from smith.git.patches import diff
from smith.git.trees import materialise, snapshot
from smith.grade.environments import Environments
from smith.grade.grader import grade
from smith.grade.hollow import hollow
from smith.grade.trial import Bench
from smith.harness.compiling import processors
from smith.harness.environment import TestEnvironment
from smith.harness.place import Place
from smith.harness.stage import Stage
from smith.paths import write_atomically
from smith.records.agent_run import AgentRun
from smith.records.attempt import Attempt, Ended, RunConfig
from smith.records.base import Reason
from smith.records.grade import Count, Grade, GradeVerdict
from smith.records.shown import Told
from smith.validate.submitted import OfSubmission

ATTEMPT, GRADE, PATCH, AGENT = "attempt.json", "grade.json", "submission.patch", "agent.json"
TIMEOUT_S = 3600.0
"""For an agent's work where nobody says otherwise."""


@dataclass(frozen=True)
class Job:
    """What one attempt needs: the task as pinned, the receipt that counts, and where its evidence goes."""

    bundle: Bundle
    receipt: StoredReceipt
    number: int
    folder: Path


def finished(folder: Path, run: str, task: str, tree: str, number: int) -> tuple[Attempt, Grade] | None:
    """The evidence of a finished attempt; None where it is missing, incomplete, broken or of something else."""
    try:
        attempt, graded = Attempt.load(folder / ATTEMPT), Grade.load(folder / GRADE)
        patch = hashlib.sha256((folder / PATCH).read_bytes()).hexdigest()
    except (RecordError, OSError):
        return None
    right = (attempt.run, attempt.task, attempt.tree, attempt.attempt) == (run, task, tree, number)
    same = (graded.task, graded.tree) == (task, tree) and attempt.patch_sha256 == graded.patch_sha256 == patch
    if not right or not same or any(reason.code == "unfinished" for reason in graded.reasons):
        return None
    return attempt, graded


def set_aside(folder: Path) -> None:
    """Move what an interrupted attempt left out of the way; it is kept, and never continued in."""
    if not folder.exists():
        return
    number = 1
    while (aside := folder.with_name(f"{folder.name}.interrupted-{number}")).exists():
        number += 1
    folder.rename(aside)


def take_patch(store: Store, bundle: Bundle, folder: Path) -> bytes:
    """What changed in a workspace, against the frozen source, whatever was done with git in there."""
    base = bundle.spec.source.tree
    return diff(store.scratch, base, snapshot(store.scratch, folder, base=base))


def infra(
    config: RunConfig, job: Job, bench: Bench, spending: Spending, why: str, ended: Ended = Ended.SANDBOX_FAULT
) -> tuple[Attempt, Grade]:
    """The evidence of an attempt that could not be made or graded through no fault of the agent's."""
    receipt = job.receipt.receipt
    if not (job.folder / PATCH).is_file():
        write_atomically(job.folder / PATCH, b"")
    patch = (job.folder / PATCH).read_bytes()
    digest = hashlib.sha256(patch).hexdigest()
    cost = spending.spent(job.bundle.id, job.number)
    attempt = Attempt(
        run=config.run,
        task=job.bundle.id,
        tree=job.bundle.tree,
        attempt=job.number,
        ended=ended,
        detail=why,
        patch_sha256=digest,
        patch_bytes=len(patch),
        micro_usd=cost.usd_micros,
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        seconds=0.0,
    )
    attempt.save(job.folder / ATTEMPT)
    graded = Grade(
        task=job.bundle.id,
        tree=job.bundle.tree,
        device=receipt.device,
        verdict=GradeVerdict.INFRA,
        reasons=(Reason(code="infra", detail=why),),
        fail_to_pass=Count(passed=0, total=len(receipt.fail_to_pass)),
        pass_to_pass=Count(passed=0, total=len(receipt.pass_to_pass)),
        speedup_reason="infra",
        patch_sha256=digest,
        receipt=job.receipt.blob,
        sandbox=bench.sandbox.name,
    )
    graded.save(job.folder / GRADE)
    return attempt, graded


def run_attempt(
    config: RunConfig,
    job: Job,
    agent: Agent,
    bench: Bench,
    environments: Environments,
    spending: Spending,
    step: Callable[[str], None],
    access: ModelAccess | None = None,
    advice: Advice | None = None,
) -> tuple[Attempt, Grade]:
    """Run, take the patch, grade. Every file is written whole; the grade comes last and makes the attempt finished.

    Raises :class:`BudgetRefused` before anything is done, or where not even a first call could be paid.
    """
    began = time.monotonic()
    task, number = job.bundle.id, job.number
    with spending.attempt(task, number), Place.create(bench.store.layout.work) as place:
        set_aside(job.folder)
        job.folder.mkdir(parents=True)
        step("agent")
        materialise(bench.store.scratch, job.bundle.spec.source.tree, place.source)
        told: Told | None = None
        if access is None:
            ending = agent.run(Workspace(place.source, job.bundle, bench.store))
        else:
            environment = environments.for_receipt(job.bundle.recipe, job.receipt.receipt)
            ending, told = _with_model(config, job, agent, bench, environment, spending, access, advice, place)
        patch = take_patch(bench.store, job.bundle, place.source)
    write_atomically(job.folder / PATCH, patch)
    if ending.ended is Ended.PROVIDER_ERROR:
        return infra(config, job, bench, spending, ending.detail, ending.ended)
    cost = spending.spent(task, number)
    attempt = Attempt(
        run=config.run,
        task=task,
        tree=job.bundle.tree,
        attempt=number,
        ended=ending.ended,
        detail=ending.detail,
        patch_sha256=hashlib.sha256(patch).hexdigest(),
        patch_bytes=len(patch),
        micro_usd=cost.usd_micros,
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        seconds=round(time.monotonic() - began, 2),
        knowledge=told,
    )
    attempt.save(job.folder / ATTEMPT)
    environment = environments.for_receipt(job.bundle.recipe, job.receipt.receipt)
    graded = grade(
        job.bundle,
        patch,
        job.receipt,
        bench,
        environment,
        save=job.folder / GRADE,
        sanitize=config.sanitize,
        emptier=hollow,
        compiler=compiler_of(config),
        step=step,
    )
    return attempt, graded


def compiler_of(config: RunConfig) -> OfSubmission | None:
    """What compiles submissions, where the run was asked to; attempts at a time share the processors."""
    return OfSubmission(config.targets, max(1, processors() // config.jobs)) if config.targets else None


def _with_model(
    config: RunConfig,
    job: Job,
    agent: Agent,
    bench: Bench,
    environment: TestEnvironment,
    spending: Spending,
    access: ModelAccess,
    advice: Advice | None,
    place: Place,
) -> tuple[Ending, Told | None]:
    """Let an agent work that asks a model, and write down what its calls came to."""
    began = time.monotonic()
    task, number = job.bundle.id, job.number
    stage = Stage(bench.sandbox, place, environment, job.bundle.recipe, bench.device, job.bundle.prelude)
    timeout_s = config.timeout_s or TIMEOUT_S
    text, told = "", None
    if advice is not None:
        text, told = advice.give(task, number, bench.store.layout.prompts, f"{stage.tmp}/{CITED}")
    with spending.gateway(access, task, number, job.folder, place.root) as gateway:
        desk = Desk(stage, gateway, job.folder, timeout_s)
        ending = agent.run(Workspace(place.source, job.bundle, bench.store, desk, text))
    if told is not None:
        told = told.model_copy(update={"cited": cited_in(place.tmp, told.shown)})
    session = gateway.session
    totals = session.count()
    if session.why == "budget" and not totals.sent:
        raise BudgetRefused(session.detail, hint="smith budget raise, then: smith resume")
    assert agent.dialect is not None
    AgentRun(
        agent=agent.name,
        model=access.model,
        dialect=agent.dialect.name,
        about=agent.describe(),
        sandbox=bench.sandbox.name,
        device=bench.device,
        timeout_s=timeout_s,
        max_output_tokens=access.most_output,
        price=access.price_source,
        calls=totals.calls,
        sent=totals.sent,
        uncertain=totals.uncertain,
        refused=totals.refused,
        faults=totals.faults,
        input_tokens=totals.usage.input_tokens,
        output_tokens=totals.usage.output_tokens,
        cached_tokens=totals.usage.cached_tokens,
        micro_usd=spending.spent(task, number).usd_micros,
        seconds=round(time.monotonic() - began, 2),
        knowledge=told,
    ).save(job.folder / AGENT)
    return ending, told
