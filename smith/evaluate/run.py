"""A run: every attempt of one agent on one panel, in parallel, resumable after a kill at any instant."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import sqlite_utils

from smith import __version__
from smith.database import immediate
from smith.errors import BadInput, BudgetRefused, RecordError, SmithError, UnknownTask
from smith.evaluate.access import access_of
from smith.evaluate.advice import CARDS_FILE, Advice
from smith.evaluate.agents import REPLAY, make_agent
from smith.evaluate.attempt import Job, finished, infra, run_attempt
from smith.evaluate.seal import altered, seal
from smith.evaluate.spending import Spending
from smith.freeze.bundle import Store
from smith.freeze.panels import pinned_receipt
from smith.grade.devices import Devices
from smith.grade.environments import Environments
from smith.grade.trial import Bench
from smith.ledger import Ledger
from smith.parallel import each
from smith.paths import ATTEMPTS, Layout, locked, write_atomically
from smith.records.attempt import Attempt, RunConfig
from smith.records.grade import Grade, GradeVerdict
from smith.records.panel import Panel
from smith.records.shown import RunCards, RunKnowledge
from smith.sandbox.base import Sandbox
from smith.state import open_state

RUN_FILE = "run.json"
Step = Callable[[str, int], None]


@dataclass(frozen=True)
class AttemptState:
    """One attempt of a run, finished or not."""

    task: str
    number: int
    attempt: Attempt | None
    grade: Grade | None


@dataclass(frozen=True)
class Shown:
    """Cards for the tasks of a run that begins, and who is shown them."""

    cards: RunCards
    mode: Literal["on", "ab"]
    seed: int

    def settings(self, digest: str) -> RunKnowledge:
        """As the run's configuration has it."""
        return RunKnowledge(mode=self.mode, seed=self.seed, cards_sha256=digest)


def start_run(
    store: Store,
    panel: Panel,
    *,
    agent: str,
    options: dict[str, str] | None = None,
    attempts: int = 1,
    jobs: int = 1,
    device: str = "auto",
    sandbox: str,
    budget_micro_usd: int | None = None,
    attempt_micro_usd: int | None = None,
    model: str | None = None,
    timeout_s: float | None = None,
    targets: tuple[str, ...] = (),
    shown: Shown | None = None,
) -> RunConfig:
    """Freeze a run's configuration and write down every attempt as pending.

    Raises :class:`BadInput` for an unusable agent, model or panel before anything is written, and
    :class:`smith.errors.UnknownPrice` for a model of which nobody knows what it costs.
    """
    options = options or {}
    if agent == REPLAY:
        model, options = _replayed(store.layout, panel, model, options, attempts)
    made = make_agent(agent, options)
    for task in panel.tasks:
        pinned_receipt(store, task, device)
    if made.dialect is None and (model is not None or not options.keys() <= {"patches"}):
        raise BadInput(f"the agent {agent!r} asks no model", hint="leave --model, --endpoint and the like out")
    if made.dialect is not None and agent != REPLAY:
        # Of the endpoint that was meant now, whatever a variable says when the run is resumed.
        options = {**options, "endpoint": access_of(store.layout, model, options, made.dialect).endpoint.url}
    if made.dialect is None and shown is not None:
        raise BadInput(f"the agent {agent!r} reads no instruction", hint="leave --knowledge out")
    now = datetime.now(UTC)
    base = f"{now.strftime('%Y%m%dT%H%M%S')}-{panel.name}-{agent}"
    run_id, number = base, 1
    while not _claim(store.layout.run(run_id)):
        number += 1
        run_id = f"{base}-{number:03d}"
    cards = shown.cards.dumps() if shown is not None else b""
    if shown is not None:
        write_atomically(store.layout.run(run_id) / CARDS_FILE, cards)
    config = RunConfig(
        run=run_id,
        panel=panel.name,
        tasks=panel.tasks,
        agent=agent,
        agent_options=options,
        attempts=attempts,
        jobs=jobs,
        device=device,
        sanitize=panel.sanitize,
        targets=targets,
        knowledge=shown and shown.settings(hashlib.sha256(cards).hexdigest()),
        sandbox=sandbox,
        budget_micro_usd=budget_micro_usd,
        attempt_micro_usd=attempt_micro_usd,
        model=model,
        timeout_s=timeout_s,
        created_at=now.isoformat(timespec="seconds"),
        smith=__version__,
    )
    config.save(store.layout.run(run_id) / RUN_FILE)
    return config


def _replayed(
    layout: Layout, panel: Panel, model: str | None, options: dict[str, str], attempts: int
) -> tuple[str, dict[str, str]]:
    """Model and options of a replay: those of the run whose answers are given again. Raises :class:`BadInput`."""
    if not options.keys() <= {"replay"} or model is not None:
        raise BadInput("a replay has model and settings from its run", hint="leave out all but --replay RUN")
    if "replay" not in options:
        raise BadInput(f"the agent {REPLAY!r} needs a run", hint="--replay RUN")
    earlier = load_run(layout, options["replay"])
    if earlier.model is None or earlier.agent == REPLAY:
        raise BadInput(f"{earlier.run}: its agent {earlier.agent!r} asked no model, so there is nothing to replay")
    pinned = {(task.id, task.tree) for task in earlier.tasks}
    unlike = [task.id for task in panel.tasks if (task.id, task.tree) not in pinned]
    if unlike or attempts > earlier.attempts:
        what = f"{unlike[0]} as it is pinned now" if unlike else f"{attempts} attempts"
        raise BadInput(f"{earlier.run}: has no record of {what}", hint=f"see: smith report {earlier.run}")
    return earlier.model, {**earlier.agent_options, "replay": earlier.run, "replayed_agent": earlier.agent}


def _claim(folder: Path) -> bool:
    """Make a run's folder; false where another process was first."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def load_run(layout: Layout, run_id: str) -> RunConfig:
    """A run's configuration; ``latest`` is the newest. Raises :class:`UnknownTask`."""
    if run_id == "latest":
        names = run_ids(layout)
        if not names:
            raise UnknownTask("there are no runs yet", hint="smith eval PANEL --agent oracle")
        run_id = names[-1]
    path = layout.run(run_id) / RUN_FILE
    if "/" in run_id or len(run_id) > 200 or not path.is_file():
        raise UnknownTask(f"no run {run_id[:80]} in {layout.runs}", hint="see: smith runs")
    config = RunConfig.load(path)
    if config.run != run_id:
        raise RecordError(f"{path}: run is {config.run}, but the folder is {run_id}")
    return config


def run_ids(layout: Layout) -> list[str]:
    """All runs, oldest first."""
    if not layout.runs.is_dir():
        return []
    return sorted(p.parent.name for p in layout.runs.glob(f"*/{RUN_FILE}"))


def attempt_folder(layout: Layout, run_id: str, task: str, number: int) -> Path:
    """Where the evidence of one attempt lies."""
    return attempt_in(layout.run(run_id), task, number)


def attempt_in(folder: Path, task: str, number: int) -> Path:
    """Where the evidence of one attempt lies below the folder of its run."""
    return folder / ATTEMPTS / task / f"{number:03d}"


def states(layout: Layout, config: RunConfig) -> list[AttemptState]:
    """Every attempt of the run in panel order, from the evidence on disk."""
    return states_in(layout.run(config.run), config)


def states_in(folder: Path, config: RunConfig) -> list[AttemptState]:
    """The same from the evidence in ``folder``, wherever that lies."""
    found = []
    for task in config.tasks:
        for number in range(1, config.attempts + 1):
            done = finished(attempt_in(folder, task.id, number), config.run, task.id, task.tree, number)
            found.append(AttemptState(task.id, number, *(done or (None, None))))
    return found


def execute(store: Store, config: RunConfig, sandbox: Sandbox, step: Step, devices: Devices) -> list[AttemptState]:
    """Do every attempt of the run that is not finished; finished evidence is never touched.

    Only one process works on a run at a time (:class:`BadInput` otherwise). A grade of ``infra`` is done again. When
    the budget is out no further attempt begins, what is under way is finished, and :class:`BudgetRefused` is raised.
    """
    layout = store.layout
    with (
        locked(layout.run(config.run) / "lock", wait=False),
        open_state(layout.state) as db,
        Ledger.open(layout.ledger) as ledger,
    ):
        _register(db, config)
        spending = Spending(ledger, config)
        spending.begin()
        agent = make_agent(config.agent, dict(config.agent_options))
        access = (
            access_of(layout, config.model, config.agent_options, agent.dialect) if agent.dialect is not None else None
        )
        advice = Advice.of(layout, config)
        environments = Environments(layout.environments, layout.logs)
        lock = threading.Lock()
        jobs = list(_open_jobs(store, config))
        total = len(config.tasks) * config.attempts
        step("", total - len(jobs))
        refused: list[BudgetRefused] = []

        def work(job: Job) -> tuple[Attempt, Grade] | None:
            if refused:
                return None
            with lock:
                _mark(db, config, job, state="running")
            bench = Bench(store, sandbox, job.receipt.receipt.device)
            try:
                # A GPU is held for the whole attempt: the agent may use what it is graded on.
                with devices.bench(store, sandbox, bench.device, purpose=f"eval {job.bundle.id}") as held:
                    return run_attempt(
                        config, job, agent, held, environments, spending, lambda text: None, access, advice
                    )
            except BudgetRefused as error:
                refused.append(error)
                with lock:
                    _mark(db, config, job, state="pending")
                return None
            except SmithError as error:
                # One attempt's fault is no other's: it is written down, shown, and done again by a resume.
                return infra(config, job, bench, spending, str(error))

        for _, done in each(work, jobs, config.jobs):
            if done is None:
                continue
            attempt, graded = done
            if graded.verdict is not GradeVerdict.INFRA:
                seal(
                    attempt_folder(layout, config.run, attempt.task, attempt.attempt),
                    config.run,
                    attempt.task,
                    attempt.attempt,
                )
            with lock:
                _record(db, config, attempt, graded)
            step(f"{attempt.task}: {graded.verdict}", 1)
        if refused:
            raise refused[0]
        found = states(layout, config)
        if all(s.grade is not None for s in found):
            with immediate(db):
                db.conn.execute("UPDATE runs SET state='done' WHERE run=?", [config.run])
        return found


@dataclass(frozen=True)
class Sealed:
    """How many finished attempts of a run are as they were sealed, and what is wrong with the others."""

    sealed: int
    unsealed: tuple[str, ...]
    """Finished without a seal: of an older smith, or killed in that moment."""
    altered: dict[str, list[str]]


def check_seals(layout: Layout, config: RunConfig) -> Sealed:
    """Look at every file of a run's finished evidence."""
    sealed, unsealed, wrong = 0, [], {}
    for task in config.tasks:
        for number in range(1, config.attempts + 1):
            folder, name = attempt_folder(layout, config.run, task.id, number), f"{task.id}/{number:03d}"
            found = altered(folder)
            if found:
                wrong[name] = found
            elif found is not None:
                sealed += 1
            elif finished(folder, config.run, task.id, task.tree, number) is not None:
                unsealed.append(name)
    return Sealed(sealed, tuple(unsealed), wrong)


def progress_of(layout: Layout) -> dict[str, int]:
    """How many attempts of each run are under way, by ``state.db``; a killed run's count stays until it is resumed."""
    if not layout.state.is_file():
        return {}
    with open_state(layout.state) as db:
        rows = db.conn.execute("SELECT run, count(*) FROM attempts WHERE state='running' GROUP BY run").fetchall()
    return {str(run): int(count) for run, count in rows}


def _open_jobs(store: Store, config: RunConfig) -> Iterable[Job]:
    for task in config.tasks:
        receipt = pinned_receipt(store, task, config.device)
        bundle = store.load(task.id)
        store.require_sources(bundle)
        for number in range(1, config.attempts + 1):
            folder = attempt_folder(store.layout, config.run, task.id, number)
            done = finished(folder, config.run, task.id, task.tree, number)
            if done is None or done[1].verdict is GradeVerdict.INFRA:
                yield Job(bundle, receipt, number, folder)
            else:
                # A kill may have come between the grade and its seal.
                seal(folder, config.run, task.id, number)


def _register(db: sqlite_utils.Database, config: RunConfig) -> None:
    with immediate(db):
        db.conn.execute(
            "INSERT INTO runs (run, panel, agent, model, created_at, state) VALUES (?, ?, ?, ?, ?, 'running') "
            "ON CONFLICT (run) DO NOTHING",
            [config.run, config.panel, config.agent, config.model, config.created_at],
        )
        for task in config.tasks:
            for number in range(1, config.attempts + 1):
                db.conn.execute(
                    "INSERT INTO attempts (run, task, attempt, state) VALUES (?, ?, ?, 'pending') "
                    "ON CONFLICT (run, task, attempt) DO UPDATE SET state='pending' WHERE state='running'",
                    [config.run, task.id, number],
                )


def _mark(db: sqlite_utils.Database, config: RunConfig, job: Job, *, state: str) -> None:
    with immediate(db):
        db.conn.execute(
            "UPDATE attempts SET state=? WHERE run=? AND task=? AND attempt=?",
            [state, config.run, job.bundle.id, job.number],
        )


def _record(db: sqlite_utils.Database, config: RunConfig, attempt: Attempt, graded: Grade) -> None:
    with immediate(db):
        db.conn.execute(
            "UPDATE attempts SET state='done', ended=?, verdict=?, seconds=?, micro_usd=?, tokens=? "
            "WHERE run=? AND task=? AND attempt=?",
            [
                attempt.ended.value,
                graded.verdict.value,
                attempt.seconds + graded.seconds,
                attempt.micro_usd,
                attempt.input_tokens + attempt.output_tokens,
                config.run,
                attempt.task,
                attempt.attempt,
            ],
        )
