"""Measuring the evidence of a card again, on this machine: winning patches that are still here are graded once more.

The same patch is no new trial, so what it comes to now changes no effect and no posterior. It is filed beside as
evidence that names what it measured again, and a card whose wins do not hold is marked as stale.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata

from smith.errors import RecordError, SmithError
from smith.evaluate.attempt import PATCH
from smith.evaluate.run import RUN_FILE, attempt_folder, load_run, run_ids
from smith.freeze.bundle import Store
from smith.freeze.panels import load_receipt
from smith.grade.devices import Devices
from smith.grade.environments import Environments
from smith.grade.grader import grade
from smith.knowledge.age import Bases, outside
from smith.knowledge.base import Known, Sealed
from smith.knowledge.cards import CardFile, save
from smith.knowledge.controls import digest_of
from smith.knowledge.distil import speed_of, toolchain_of
from smith.knowledge.effects import COUNTED, outcome
from smith.knowledge.seal import reseal
from smith.paths import Layout, write_atomically
from smith.records.attempt import RunConfig
from smith.records.card import Card, Status
from smith.records.sealed import Use, UseOutcome
from smith.sandbox.base import Sandbox

FOLDER = "revalidations"


@dataclass
class Revalidated:
    """What became of one card. ``why`` says for each win that was not measured why not."""

    card: str
    status: Status
    reason: str = ""
    measured: int = 0
    held: int = 0
    """Of these, those that win still."""
    evidence: list[str] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether something was measured, all of it held, and the card is current."""
        return 0 < self.measured == self.held and self.status is Status.ACTIVE


@dataclass(frozen=True)
class Artifacts:
    """The runs of this data repository by the digests by which evidence calls them."""

    layout: Layout
    runs: Mapping[str, RunConfig]

    @classmethod
    def of(cls, layout: Layout) -> Artifacts:
        """Read the configuration of every run; a broken one holds nothing that could be trusted."""
        found = {}
        for run in run_ids(layout):
            try:
                found[digest_of(layout.run(run) / RUN_FILE)] = load_run(layout, run)
            except RecordError:
                continue
        return cls(layout, found)

    def patch(self, run: str, use: Use) -> bytes | str:
        """The patch of a use, or why it is not here."""
        config = self.runs.get(run)
        if config is None:
            return f"the run {run[:12]} is not on this machine"
        try:
            data = (attempt_folder(self.layout, config.run, use.task, use.attempt) / PATCH).read_bytes()
        except OSError:
            return f"{config.run} has no patch of attempt {use.attempt} any more"
        if hashlib.sha256(data).hexdigest() != use.patch_sha256:
            return f"the patch in {config.run} is not the one that was measured"
        return data


@dataclass(frozen=True)
class Grading:
    """Where patches are graded again."""

    store: Store
    sandbox: Sandbox
    devices: Devices
    environments: Environments
    stamp: str
    """Names the folder of the new grades."""
    say: Callable[[str], None] = lambda text: None


def revalidate(known: Known, artifacts: Artifacts, bases: Bases, grading: Grading | None) -> Revalidated:
    """Measure the wins of a card again, the best of each task and device; look at its age; write what was found.

    Without ``grading`` only the age is looked at. Evidence and card are written into the work tree, to be committed.
    """
    card = known.file.card
    found = Revalidated(card.id, card.status, card.reason)
    versions = {name: version for name in card.applies_to.toolchain if (version := _installed(name))}
    again: defaultdict[str, list[Use]] = defaultdict(list)
    for sealed, use in best_wins(known) if grading is not None else ():
        assert grading is not None
        made = _measure(grading, artifacts, sealed, use)
        if isinstance(made, str):
            found.why.append(f"{use.task} on {use.device}: {made}")
            continue
        measured, used = made
        versions |= used
        found.measured += 1
        found.held += measured.outcome is UseOutcome.WIN
        again[sealed.digest].append(measured)
    for sealed in known.evidence:
        if uses := again.get(sealed.digest):
            data, digest = reseal(sealed, uses, versions)
            write_atomically(artifacts.layout.evidence / f"{digest}.json", data)
            found.evidence.append(digest)
    _judge(known, found, [*outside(card, versions), *bases.gone(known)], versions)
    if (found.status, found.reason) != (card.status, card.reason):
        changed = {**card.model_dump(mode="json"), "status": found.status.value, "reason": found.reason}
        file = CardFile(known.file.where, Card.parse(changed, known.file.where), known.file.body)
        save(artifacts.layout, file)
    return found


def _judge(known: Known, found: Revalidated, old: list[str], versions: Mapping[str, str]) -> None:
    """Mark as stale what is old or does not hold, and as active again what was stale and holds."""
    if known.file.card.status is Status.RETRACTED:
        return
    words = list(old)
    if found.held < found.measured:
        compilers = ", ".join(f"{name} {versions[name]}" for name in ("triton", "torch") if name in versions)
        lost = found.measured - found.held
        words.append(
            f"{lost} of {found.measured} wins did not hold when measured again{f', with {compilers}' * bool(compilers)}"
        )
    if words:
        found.status, found.reason = Status.STALE, f"{'; '.join(words)}."[:400]
    elif found.measured:
        found.status, found.reason = Status.ACTIVE, ""


def best_wins(known: Known) -> Iterator[tuple[Sealed, Use]]:
    """For each task and device the win with the best lower end of its interval."""
    best: dict[tuple[str, str], tuple[Sealed, Use]] = {}
    for sealed in known.evidence:
        for use in sealed.evidence.uses:
            if sealed.evidence.again is not None or use.outcome is not UseOutcome.WIN or not use.pulled:
                continue
            there = best.get((use.task, use.device))
            if there is None or _rank(use) > _rank(there[1]):
                best[use.task, use.device] = (sealed, use)
    return (best[key] for key in sorted(best))


def _rank(use: Use) -> tuple[float, str]:
    return (use.speed.low if use.speed is not None else 0.0, use.patch_sha256)


def _measure(grading: Grading, artifacts: Artifacts, sealed: Sealed, use: Use) -> tuple[Use, dict[str, str]] | str:
    """One win measured again, with the versions of what compiled it; or why it was not."""
    patch = artifacts.patch(sealed.evidence.run, use)
    if isinstance(patch, str):
        return patch
    config = artifacts.runs[sealed.evidence.run]
    store = grading.store
    try:
        bundle = store.load(use.task)
        if bundle.tree != use.tree:
            return "the task has changed since"
        store.require_sources(bundle)
        expected = load_receipt(store.layout.receipt(use.task, use.tree, use.device), use.task, use.tree)
        environment = grading.environments.for_receipt(bundle.recipe, expected.receipt)
        save = store.layout.run(config.run) / FOLDER / grading.stamp / use.task / f"{use.attempt:03d}.json"
        grading.say(f"{use.task} on {use.device}")
        with grading.devices.bench(store, grading.sandbox, use.device, purpose=f"revalidate {use.task}") as held:
            graded = grade(bundle, patch, expected, held, environment, save=save, sanitize=config.sanitize)
    except SmithError as error:
        return error.message
    if graded.verdict not in COUNTED:
        return f"its grade is {graded.verdict.value}" + (f": {graded.reasons[0]}" if graded.reasons else "")
    speed = speed_of(graded.speedup) if graded.speedup is not None else None
    if use.control is None and speed is None and graded.verdict.value == "solved":
        return f"its speed was not measured: {graded.speedup_reason}"
    measured = use.model_copy(
        update={
            "verdict": graded.verdict,
            "reasons": tuple(sorted({reason.code for reason in graded.reasons})),
            "outcome": outcome(graded.verdict, speed, use.control),
            "fail_to_pass": graded.fail_to_pass,
            "pass_to_pass": graded.pass_to_pass,
            "speed": speed if use.control is None else None,
            "grade_sha256": digest_of(save),
            "receipt": expected.blob,
            "read": None,
        }
    )
    return measured, toolchain_of(graded.environment or expected.receipt.environment)


def _installed(package: str) -> str:
    """The version of a package below every environment of this machine; empty where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
