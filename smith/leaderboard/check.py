"""The gate of the leaderboard: everything that keeps an entry out, a typed code each.

The checks of a pull request run it. It runs no test: what it can prove is that an entry is whole, and that its figures
follow from its evidence and that from the receipts of the panel. Whether a grade was really measured, only measuring
again tells (``smith regrade --entry``).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from smith.errors import RecordError
from smith.evaluate.attempt import AGENT
from smith.evaluate.run import attempt_in
from smith.freeze.bundle import Store
from smith.freeze.panel_tree import known_trees, panel_tree, repo_prefix
from smith.git.objects import list_tree, shown
from smith.git.repository import Repository
from smith.knowledge.check import Finding
from smith.leaderboard.entry import FIGURES, MANIFEST, OF_ATTEMPT, Entry, entry_folders, files_below, load_entry
from smith.leaderboard.entry import plain_file as plain
from smith.leaderboard.figures import figures_of, tasks_of_entry, unlike
from smith.leaderboard.follows import faults
from smith.leaderboard.receipts import PinnedReceipts
from smith.leaderboard.seal import private, public
from smith.records.agent_run import AgentRun
from smith.records.leaderboard import Figures
from smith.score.metrics import scores

MOST_FAULTS = 20
"""Attempts of one entry of which is said what is wrong."""


@dataclass
class Checked:
    """What a check found."""

    entries: int = 0
    findings: list[Finding] = field(default_factory=list)


class Gate:
    """Checks entries of one data repository. ``machine`` is the name of this machine, which no entry may give."""

    def __init__(self, store: Store, machine: str = "") -> None:
        self._store, self._machine = store, machine
        self.receipts = PinnedReceipts(store)
        self._trees: dict[str, frozenset[str]] = {}

    def findings(self, folder: Path) -> tuple[Entry | None, list[Finding]]:
        """The entry in ``folder``, where it can be read, and all that is wrong with it."""
        where = folder.relative_to(self._store.layout.root).as_posix()
        try:
            entry = load_entry(folder)
        except RecordError as error:
            return None, [Finding(where, "schema", error.message)]
        found = [Finding(where, code, message) for code, message in self._of(entry)]
        return entry, found

    def _of(self, entry: Entry) -> Iterator[tuple[str, str]]:
        if entry.digest != entry.folder.name:
            yield "digest", f"its manifest has the digest {entry.digest[:12]}, which is not the folder's name"
        broken = list(_files(entry))
        yield from broken
        yield from self._panel(entry)
        if broken:
            return  # what follows from other files than these is no matter
        attempts = list(self._attempts(entry))
        yield from attempts
        if not attempts:  # figures of other evidence than a run's say nothing
            yield from self._figures(entry)
        yield from self._words(entry)

    def _panel(self, entry: Entry) -> Iterator[tuple[str, str]]:
        manifest, config = entry.manifest, entry.config
        if (manifest.panel, manifest.run) != (config.panel, config.run) or manifest.panel != entry.folder.parent.name:
            yield "panel", "manifest, run and folder do not speak of the same panel and run"
            return
        if panel_tree(config.tasks, sanitize=config.sanitize) != manifest.panel_tree:
            yield "panel", "the run was not of the tasks, receipts and policy that its panel tree names"
        elif manifest.panel_tree not in self._known(manifest.panel):
            yield "panel", f"no version of panels/{manifest.panel}.toml has the tree {manifest.panel_tree[:12]}"

    def _known(self, panel: str) -> frozenset[str]:
        if panel not in self._trees:
            self._trees[panel] = frozenset(known_trees(self._store, panel))
        return self._trees[panel]

    def _attempts(self, entry: Entry) -> Iterator[tuple[str, str]]:
        pinned, told = {task.id: task for task in entry.config.tasks}, 0
        for state in entry.states:
            task, device = pinned[state.task], state.grade.device if state.grade is not None else ""
            try:
                agent = _agent(entry, state.task, state.number)
            except RecordError as error:
                yield "schema", error.message
                continue
            for fault in faults(state, task, self.receipts.find(task, device), agent):
                told += 1
                if told <= MOST_FAULTS:
                    yield "evidence", f"{state.task}, attempt {state.number}: {fault}"
        if told > MOST_FAULTS:
            yield "evidence", f"{told - MOST_FAULTS} more of the kind"

    def _figures(self, entry: Entry) -> Iterator[tuple[str, str]]:
        try:
            sealed = Figures.loads(plain(entry.folder / FIGURES, FIGURES), FIGURES)
        except RecordError as error:
            yield "schema", error.message
            return
        now = figures_of(scores(tasks_of_entry(entry.config, entry.states, self.receipts)))
        if wrong := unlike(sealed.figures, now):
            more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            yield "figures", f"{', '.join(wrong[:5])}{more}: not what the evidence comes to"

    def _words(self, entry: Entry) -> Iterator[tuple[str, str]]:
        config = entry.config
        if public(config) != config:
            yield "private", "its options say where files, programs or endpoints are"
        words = [config.run, config.agent, config.model or "", *config.agent_options.values()]
        for state in entry.states:
            if state.attempt is not None and state.grade is not None:
                words += [state.attempt.detail, *(r.detail for r in state.grade.reasons), *state.grade.notes]
                words += [test.message for test in state.grade.tests]
                words += _about(entry, state.task, state.number)
        if said := next(filter(None, (private(text, self._machine) for text in dict.fromkeys(words))), ""):
            yield "private", f"no entry may say {said!r}"


def check(store: Store, *, base: str | None = None, machine: str = "") -> Checked:
    """Check every entry; with ``base`` also that nothing which was there at this commit is gone or changed.

    Raises :class:`smith.errors.BadInput` for a base that is no commit.
    """
    found, gate = Checked(), Gate(store, machine)
    runs: dict[tuple[str, str, str], str] = {}
    for folder in entry_folders(store.layout):
        found.entries += 1
        entry, findings = gate.findings(folder)
        found.findings += findings
        if entry is not None:
            key = (entry.manifest.panel, entry.manifest.panel_tree, entry.manifest.run)
            first = runs.setdefault(key, folder.name)
            if first != folder.name:
                where = folder.relative_to(store.layout.root).as_posix()
                found.findings.append(Finding(where, "duplicate", f"the run {key[2]} is in {first[:12]} already"))
    found.findings += [Finding(where, "stray", "is no part of an entry") for where in _strays(store)]
    if base is not None:
        found.findings += _since(store, base)
    found.findings.sort(key=lambda finding: (finding.where, finding.code, finding.message))
    return found


def _files(entry: Entry) -> Iterator[tuple[str, str]]:
    """Whether the files are those of the manifest, and those of the attempts that were planned."""
    config, named = entry.config, entry.manifest.files
    planned = {
        attempt_in(Path(), task.id, number).joinpath(name).as_posix()
        for task in config.tasks
        for number in range(1, config.attempts + 1)
        for name in OF_ATTEMPT
    }
    allowed = planned | {"run.json", FIGURES}
    there = set(files_below(entry.folder)) - {MANIFEST}
    for name in sorted(there - named.keys()):
        yield "stray", f"{name}: the manifest does not name it"
    for name in sorted(named.keys() - there):
        yield "missing", f"{name}: is gone"
    for name in sorted(there & named.keys()):
        if name not in allowed:
            yield "stray", f"{name}: is no file of an entry"
            continue
        try:
            data = plain(entry.folder / name, name)
        except RecordError as error:
            yield "file", error.message
            continue
        if hashlib.sha256(data).hexdigest() != named[name]:
            yield "digest", f"{name}: is not the file that the manifest names"


def _agent(entry: Entry, task: str, number: int) -> AgentRun | None:
    path = attempt_in(entry.folder, task, number) / AGENT
    return AgentRun.loads(plain(path, AGENT), f"{task}/{number:03d}/{AGENT}") if path.is_file() else None


def _about(entry: Entry, task: str, number: int) -> list[str]:
    """What an agent says of itself; nothing where that cannot be read, which is said elsewhere."""
    try:
        agent = _agent(entry, task, number)
    except RecordError:
        return []
    return [] if agent is None else [agent.agent, agent.model, agent.price, *agent.about.values()]


def _strays(store: Store) -> Iterator[str]:
    """Files beside entries, and links in place of folders."""
    root = store.layout.leaderboard
    kept = {"README.md", ".gitkeep"}
    for path in sorted(root.glob("*"), key=os.fspath) if root.is_dir() else ():
        inner = sorted(path.glob("*"), key=os.fspath) if path.is_dir() and not path.is_symlink() else [path]
        for one in inner:
            if one.is_symlink() or (not one.is_dir() and one.name not in kept):
                yield one.relative_to(store.layout.root).as_posix()


def _since(store: Store, base: str) -> Iterator[Finding]:
    """Entries are only added. Their digests hold what is in them, so a folder that is there is the same."""
    repo = Repository(store.data.git_dir)
    place = f"{repo.resolve(base)}:{repo_prefix(store)}{store.layout.leaderboard.name}"
    tree = repo.run("rev-parse", "--verify", "--quiet", place)
    if not tree.ok:
        return
    paths = (shown(e.path).split("/") for e in list_tree(repo, tree.stdout.text.strip()))
    for panel, digest in sorted({(p[0], p[1]) for p in paths if len(p) > 2}):
        if not (store.layout.leaderboard / panel / digest / MANIFEST).is_file():
            where = f"{store.layout.leaderboard.name}/{panel}/{digest}"
            yield Finding(where, "removed", "entries are only added")
