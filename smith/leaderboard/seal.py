"""From a run to the files of an entry, without what is of the machine that it was made on."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from smith.errors import BadInput
from smith.evaluate.attempt import AGENT, ATTEMPT, GRADE, PATCH
from smith.evaluate.run import RUN_FILE, AttemptState, attempt_folder, states
from smith.freeze.bundle import Store
from smith.freeze.panel_tree import known_trees, panel_tree
from smith.git import proposal
from smith.git.repository import Repository
from smith.knowledge.forbidden import forbidden
from smith.leaderboard.entry import FIGURES, MANIFEST, OF_ATTEMPT
from smith.leaderboard.figures import figures_of, tasks_of_entry
from smith.leaderboard.receipts import PinnedReceipts
from smith.records.agent_run import AgentRun
from smith.records.attempt import Attempt, RunConfig
from smith.records.base import Reason
from smith.records.grade import Grade, GradeVerdict
from smith.records.leaderboard import Figures, Manifest
from smith.score.metrics import Scores, scores

BRANCH = "refs/heads/leaderboard/"
PRIVATE = frozenset({"absolute_path", "machine_name", "address", "secret"})
"""What no entry may say, by the codes of :mod:`smith.knowledge.forbidden`."""
LEFT_OUT = "left out: it names something of a machine"
_OPTIONS = frozenset({"max_output_tokens", "steps", "context_tokens", "provider"})
"""Options of an agent that say how it worked; the others say where files, programs and endpoints are."""
_INSIDE = re.compile(r"/smith/[\w./+-]*")
"""Paths of the sandbox, which are the same everywhere."""


@dataclass(frozen=True)
class Sealed:
    """An entry that is not written yet: paths below its folder to content."""

    digest: str
    files: dict[str, bytes]
    manifest: Manifest
    scores: Scores


@dataclass(frozen=True)
class Proposed:
    """An entry as the commit of a branch. ``where`` is its folder below the data repository."""

    branch: str
    commit: str
    where: str
    message: str
    sealed: Sealed


def private(text: str, machine: str = "") -> str:
    """What ``text`` says of a machine, quoted in short; empty where that is nothing."""
    bare = _INSIDE.sub("", text)
    return next((f.quoted for f in forbidden(bare, machine=machine) if f.code in PRIVATE), "")


def public(config: RunConfig) -> RunConfig:
    """A run's configuration as everybody may read it."""
    kept = {k: v for k, v in config.agent_options.items() if k in _OPTIONS or k.startswith("sampling.")}
    return config.model_copy(update={"agent_options": kept})


def seal(store: Store, config: RunConfig, machine: str = "") -> Sealed:
    """Seal the evidence of a finished run. The same evidence gives the same bytes.

    Raises :class:`BadInput` for a run that is not finished, or that says something of a machine where it must not.
    """
    found = states(store.layout, config)
    _require_whole(config, found)
    shown = public(config)
    if said := private("\n".join((config.run, config.agent, config.model or "")), machine):
        raise BadInput(f"{config.run}: its agent or model is called {said!r}, which no entry may say")
    files = {RUN_FILE: shown.dumps()}
    graded = []
    for state in found:
        assert state.attempt is not None and state.grade is not None
        attempt, grade = _attempt(state.attempt, machine), _grade(state.grade, machine)
        graded.append(AttemptState(state.task, state.number, attempt, grade))
        files |= _files(store, config, graded[-1], machine)
    scored = scores(tasks_of_entry(config, graded, PinnedReceipts(store)))
    files[FIGURES] = Figures(figures=figures_of(scored)).dumps()
    manifest = Manifest(
        panel=config.panel,
        panel_tree=panel_tree(config.tasks, sanitize=config.sanitize),
        run=config.run,
        files={name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
    )
    files[MANIFEST] = manifest.dumps()
    return Sealed(hashlib.sha256(files[MANIFEST]).hexdigest(), files, manifest, scored)


def _require_whole(config: RunConfig, found: list[AttemptState]) -> None:
    missing = sum(s.grade is None for s in found)
    again = sum(s.grade is not None and s.grade.verdict is GradeVerdict.INFRA for s in found)
    if missing or again:
        words = " and ".join(f"{n} {what}" for n, what in ((missing, "missing"), (again, "not graded")) if n)
        raise BadInput(
            f"{config.run} is not finished: of {len(found)} attempts {words}", hint=f"smith resume {config.run}"
        )


def _attempt(attempt: Attempt, machine: str) -> Attempt:
    return attempt.model_copy(update={"detail": _said(attempt.detail, machine)})


def _grade(grade: Grade, machine: str) -> Grade:
    """Without what tests printed: for people, long, and of the machine."""
    return grade.model_copy(
        update={
            "reasons": tuple(Reason(code=r.code, detail=_said(r.detail, machine)) for r in grade.reasons),
            "notes": tuple(_said(note, machine) for note in grade.notes),
            "tests": tuple(t.model_copy(update={"message": ""}) for t in grade.tests),
        }
    )


def _said(text: str, machine: str) -> str:
    return LEFT_OUT if private(text, machine) else text


def _files(store: Store, config: RunConfig, state: AttemptState, machine: str) -> dict[str, bytes]:
    assert state.attempt is not None and state.grade is not None
    folder = attempt_folder(store.layout, config.run, state.task, state.number)
    where = f"attempts/{state.task}/{state.number:03d}"
    patch = (folder / PATCH).read_bytes()
    if secret := next((f for f in forbidden(patch.decode("utf-8", "replace")) if f.code == "secret"), None):
        raise BadInput(f"{folder / PATCH} holds what looks like a key ({secret.quoted}): it cannot be published")
    made = {PATCH: patch, GRADE: state.grade.dumps(), ATTEMPT: state.attempt.dumps()}
    if (folder / AGENT).is_file():
        about = AgentRun.load(folder / AGENT)
        kept = {name: _said(value, machine) for name, value in about.about.items()}
        made[AGENT] = about.model_copy(update={"about": kept}).dumps()
    return {f"{where}/{name}": made[name] for name in OF_ATTEMPT if name in made}


def add(store: Store, config: RunConfig, machine: str = "") -> Proposed:
    """Seal a run and commit it to the branch ``leaderboard/<run>``; nothing is checked out or changed.

    Raises :class:`BadInput` on a dirty work tree, for a run that cannot be sealed or of a panel that this repository
    does not know, or where the branch holds something else.
    """
    repo = Repository(store.data.git_dir)
    head = proposal.clean_head(store.layout.root, repo)
    sealed = seal(store, config, machine)
    if sealed.manifest.panel_tree not in known_trees(store, config.panel):
        raise BadInput(
            f"{config.run} is of a panel {config.panel} that was never committed here",
            hint="commit the panel, or run it again as it is now",
        )
    where = f"{store.layout.leaderboard.name}/{config.panel}/{sealed.digest}"
    if (store.layout.root / where).exists():
        raise BadInput(f"{config.run} is in the leaderboard already", hint=f"{where}")
    message = _message(config, sealed)
    branch = f"{BRANCH}{config.run}"
    files = {f"{where}/{name}": data for name, data in sealed.files.items()}
    commit = proposal.commit(store.layout.root, repo, head, files, message, branch)
    return Proposed(branch.removeprefix("refs/heads/"), commit, where, message, sealed)


def _message(config: RunConfig, sealed: Sealed) -> str:
    who = f"{config.agent} with {config.model}" if config.model else config.agent
    solved = sealed.scores.solved
    body = (
        f"{solved.count} of {solved.total} attempts at {len(config.tasks)} tasks solved. Every figure follows from\n"
        "the patches and grades beside it (smith leaderboard check); whether the grades are right, grading again\n"
        f"says: smith regrade --entry {sealed.digest[:12]}"
    )
    trailers = f"Smith-Run: {config.run}\nSmith-Entry: {sealed.digest}\nSmith-Panel-Tree: {sealed.manifest.panel_tree}"
    return f"leaderboard: {who} on {config.panel}\n\n{body}\n\n{trailers}\n"
