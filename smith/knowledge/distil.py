"""From the evidence of a run to what it says about levers: uses by card, and a count of what was left out and why.

Deterministic from patches, grades and receipts: the same run gives the same bytes. Only wins that were measured make a
card; losses and uses without effect are filed with them, and with cards that are there already.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from smith.errors import RecordError, SmithError
from smith.evaluate.attempt import ATTEMPT, GRADE, PATCH
from smith.evaluate.run import RUN_FILE, AttemptState, attempt_folder, states
from smith.freeze.bundle import TASK_FILE, Store
from smith.freeze.panels import StoredReceipt, load_receipt
from smith.knowledge.base import Known, Sealed
from smith.knowledge.cards import OTHER, with_identifier
from smith.knowledge.effects import COUNTED, effects_of, outcome
from smith.knowledge.held_out import HeldOut
from smith.knowledge.levers import pulled, table, titles
from smith.mine.signals import operators
from smith.records.attempt import RunConfig
from smith.records.base import read
from smith.records.card import Aim, AppliesTo, Card, Status
from smith.records.grade import Grade
from smith.records.panel import PanelTask
from smith.records.receipt import Timing, UsedEnvironment
from smith.records.sealed import CaseRatio, Control, Evidence, Speed, Use, UseOutcome
from smith.records.task import SmithMetadata, TaskFile

_COMPILERS = ("triton", "torch")


class Key(NamedTuple):
    """What makes uses one card's."""

    aim: Aim
    lever: str
    operator: str
    languages: tuple[str, ...]
    device: str
    """Its family."""


@dataclass
class Gathered:
    """What a run says. ``left_out`` counts attempts by why they say nothing."""

    uses: dict[Key, list[Use]] = field(default_factory=dict)
    toolchains: dict[Key, dict[str, str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def gather(store: Store, config: RunConfig, control: RunConfig | None = None) -> Gathered:
    """Every attempt of a run that says something of a lever. Held-out tasks say nothing, whatever became of them."""
    layout = store.layout
    held_out = HeldOut.of(layout)
    pins = {task.id: task for task in config.tasks}
    controls = _controls(store, control) if control is not None else {}
    found = Gathered()
    uses: defaultdict[Key, list[Use]] = defaultdict(list)
    for state in states(layout, config):
        made = _use(store, config, state, pins[state.task], held_out, controls)
        if isinstance(made, str):
            found.left_out[made] += 1
            continue
        key, use, versions = made
        uses[key].append(use)
        found.toolchains.setdefault(key, {}).update(versions)
    found.uses = dict(sorted(uses.items()))
    return found


def _use(
    store: Store,
    config: RunConfig,
    state: AttemptState,
    pin: PanelTask,
    held_out: HeldOut,
    controls: Mapping[tuple[str, str, int], Control],
) -> tuple[Key, Use, dict[str, str]] | str:
    """What one attempt says, or why it says nothing."""
    graded = state.grade
    if graded is None:
        return "no evidence is left of it"
    if held_out.forbids(state.task):
        return "its task is held out"
    if graded.verdict not in COUNTED:
        return f"its grade is {graded.verdict.value}"
    receipt = _receipt(store, graded, pin)
    if receipt is None:
        return "the receipt that its panel pins is not here"
    try:
        task = TaskFile.load(store.layout.task(state.task) / TASK_FILE).metadata.smith
    except SmithError:
        return "its task is not here"
    folder = attempt_folder(store.layout, config.run, state.task, state.number)
    does = pulled((folder / PATCH).read_bytes(), task)
    if does is None:
        return "its patch pulls no lever that smith can tell"
    speed = _speed(graded.speedup) if graded.speedup is not None else None
    aim = Aim.SPEED if receipt.receipt.timing is not None else Aim.CORRECTNESS
    paired = controls.get((state.task, graded.device, state.number)) if aim is Aim.CORRECTNESS else None
    if aim is Aim.CORRECTNESS and paired is None:
        return "it is about correctness, and has no paired control (--control RUN)"
    use = Use(
        task=state.task,
        tree=pin.tree,
        attempt=state.number,
        device=graded.device,
        verdict=graded.verdict,
        reasons=tuple(sorted({reason.code for reason in graded.reasons})),
        outcome=outcome(graded.verdict, speed, paired),
        fail_to_pass=graded.fail_to_pass,
        pass_to_pass=graded.pass_to_pass,
        speed=speed if aim is Aim.SPEED else None,
        control=paired,
        patch_sha256=graded.patch_sha256,
        grade_sha256=_digest(folder / GRADE),
        attempt_sha256=_digest(folder / ATTEMPT),
        receipt=receipt.blob,
    )
    key = Key(aim, does.lever, operator_of(task), does.languages, graded.device.partition(":")[0])
    return key, use, _toolchain(graded.environment or receipt.receipt.environment)


def operator_of(task: SmithMetadata) -> str:
    """The class of operators that a task is about, by its kernels alone; ``other`` where no word tells."""
    return next(iter(operators("", (), task.kernels)), OTHER)


def _receipt(store: Store, graded: Grade, pin: PanelTask) -> StoredReceipt | None:
    """The pinned receipt that an attempt was graded by; None where it is another, or is not here."""
    blob = pin.receipts.get(graded.device)
    if blob is None or graded.receipt not in (None, blob):
        return None
    try:
        stored = load_receipt(store.layout.receipt(pin.id, pin.tree, graded.device), pin.id, pin.tree)
    except RecordError:
        return None
    return stored if stored.blob == blob else None


def _controls(store: Store, control: RunConfig) -> dict[tuple[str, str, int], Control]:
    """The graded attempts of the control run by task, device and number."""
    found = {}
    for state in states(store.layout, control):
        if state.grade is not None and state.grade.verdict in COUNTED:
            folder = attempt_folder(store.layout, control.run, state.task, state.number)
            found[state.task, state.grade.device, state.number] = Control(
                verdict=state.grade.verdict,
                grade_sha256=_digest(folder / GRADE),
                patch_sha256=state.grade.patch_sha256,
            )
    return found


def _speed(timing: Timing) -> Speed:
    cases = tuple(CaseRatio(case=c.case, ratio=c.ratio, low=c.low, high=c.high) for c in timing.cases)
    return Speed(
        ratio=timing.geomean,
        low=timing.low,
        high=timing.high,
        worst=timing.worst,
        rounds=timing.rounds,
        noise_low=timing.noise_low,
        noise_high=timing.noise_high,
        answer=timing.answer,
        cases=cases,
    )


def _toolchain(used: UsedEnvironment | None) -> dict[str, str]:
    return {name: used.packages[name] for name in _COMPILERS if name in used.packages} if used is not None else {}


def _digest(path: Path) -> str:
    return hashlib.sha256(read(path)).hexdigest()


def run_digest(store: Store, config: RunConfig) -> str:
    """What a run is called in evidence: the digest of its configuration."""
    return _digest(store.layout.run(config.run) / RUN_FILE)


def card_of(key: Key) -> Card:
    """The card that a key states. It holds nothing of a run, so two runs that find it write the same bytes."""
    *most, last = titles(key.lever)
    named = f"{', '.join(most)} and {last}" if most else last
    aim = "faster" if key.aim is Aim.SPEED else "correct"
    symbols = {s for code in key.lever.split("+") if code in table() for s in table()[code].symbols}
    return with_identifier(
        Card(
            id="0" * 12,
            title=f"{key.operator} in {', '.join(key.languages)}, {aim} with {named}"[:160],
            aim=key.aim,
            lever=key.lever,
            applies_to=AppliesTo(operator=key.operator, languages=key.languages, devices=(key.device,)),
            symbols=tuple(sorted(symbols)),
        )
    )


def match(cards: Iterable[Known], key: Key) -> Known | None:
    """The card that a key's uses belong to: the one that states the same, else one whose lever and place hold it."""
    wanted = card_of(key)
    some = sorted(cards, key=lambda known: known.file.where)
    for known in some:
        if known.file.card.id == wanted.id:
            return known
    for known in some:
        card = known.file.card
        where = card.applies_to
        # What is narrower than the key (a dtype, a regime) was not told of these uses.
        if (
            (card.aim, card.lever, where.operator) == (key.aim, key.lever, key.operator)
            and set(key.languages) <= set(where.languages)
            and key.device in where.devices
            and not where.dtypes
            and not where.regime
            and card.status is not Status.STALE
        ):
            return known
    return None


def seal(
    key: Key, uses: Sequence[Use], card: str, config: RunConfig, control: RunConfig | None, store: Store, *,
    founding: bool, toolchain: Mapping[str, str],
) -> Sealed:  # fmt: skip
    """The evidence of one run for one card."""
    ordered = tuple(sorted(uses, key=lambda use: (use.task, use.attempt)))
    evidence = Evidence(
        card=card,
        founding=founding,
        run=run_digest(store, config),
        control_run=run_digest(store, control) if control is not None and key.aim is Aim.CORRECTNESS else None,
        panel=config.panel,
        agent=config.agent,
        model=config.model,
        toolchain=dict(sorted(toolchain.items())),
        uses=ordered,
        effects=effects_of(ordered),
    )
    return Sealed(hashlib.sha256(evidence.dumps()).hexdigest(), evidence)


def wins(uses: Iterable[Use]) -> list[Use]:
    """Those that won."""
    return [use for use in uses if use.outcome is UseOutcome.WIN]
