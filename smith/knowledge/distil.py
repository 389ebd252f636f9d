"""From the evidence of a run to what it says about levers: uses by card, and a count of what was left out and why.

Deterministic from patches, grades and receipts: the same run gives the same bytes. Only wins that were measured make a
card; losses and uses without effect are filed with them, and with cards that are there already.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from smith.errors import RecordError, SmithError
from smith.evaluate.attempt import ATTEMPT, GRADE, PATCH
from smith.evaluate.run import AttemptState, attempt_folder, states
from smith.freeze.bundle import TASK_FILE, Store
from smith.freeze.panels import StoredReceipt, load_receipt
from smith.knowledge.base import Known
from smith.knowledge.cards import OTHER, with_identifier
from smith.knowledge.controls import controls_in_pairs, controls_of, digest_of
from smith.knowledge.effects import COUNTED, outcome
from smith.knowledge.held_out import HeldOut
from smith.knowledge.levers import pulled, table, titles
from smith.mine.signals import operators
from smith.records.attempt import RunConfig
from smith.records.card import Aim, AppliesTo, Card, Status
from smith.records.grade import Grade
from smith.records.panel import PanelTask
from smith.records.receipt import Timing, UsedEnvironment
from smith.records.sealed import CaseRatio, Control, Speed, Use, UseOutcome, UseRead
from smith.records.shown import Arm, Told
from smith.records.task import SmithMetadata, TaskFile

COMPILERS = ("triton", "torch")
"""Packages whose versions evidence names."""
_NO_LEVER = "its patch pulls no lever that smith can tell"


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
    """By what makes them one card's."""
    cited: dict[str, list[Use]] = field(default_factory=dict)
    """By card: attempts that cite it, and whose patch does something else."""
    toolchains: dict[Key, dict[str, str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Measured:
    """What one attempt came to, with what its patch does, if that can be told."""

    key: Key | None
    aim: Aim
    use: Use
    told: Told | None
    versions: dict[str, str]


def gather(store: Store, config: RunConfig, control: RunConfig | None = None, cards: Sequence[Known] = ()) -> Gathered:
    """Every attempt of a run that says something of a lever, or that cites one of ``cards``.

    In a run with ``--knowledge ab`` the attempt that was not shown cards is the control of the other of its pair, where
    no control is named. Held-out tasks say nothing, whatever became of them.
    """
    layout = store.layout
    held_out = HeldOut.of(layout)
    pins = {task.id: task for task in config.tasks}
    controls = controls_of(store, control) if control is not None else controls_in_pairs(store, config)
    known = {one.file.card.id: one.file.card for one in cards}
    found = Gathered()
    uses: defaultdict[Key, list[Use]] = defaultdict(list)
    cited: defaultdict[str, list[Use]] = defaultdict(list)
    for state in states(layout, config):
        made = _use(store, config, state, pins[state.task], held_out, controls)
        if isinstance(made, str):
            found.left_out[made] += 1
            continue
        matched = ""
        if made.key is not None:
            there = match(cards, made.key)
            matched = there.file.card.id if there is not None else card_of(made.key).id
            uses[made.key].append(made.use.model_copy(update={"read": _read(made.told, matched)}))
            found.toolchains.setdefault(made.key, {}).update(made.versions)
        others = [known[card] for card in made.told.cited if card in known and card != matched] if made.told else []
        for card in others:
            if card.aim is made.aim:
                cited[card.id].append(made.use.model_copy(update={"read": UseRead.CITED, "pulled": False}))
        if made.key is None and not others:
            found.left_out[_NO_LEVER] += 1
    found.uses, found.cited = dict(sorted(uses.items())), dict(sorted(cited.items()))
    return found


def _read(told: Told | None, card: str) -> UseRead | None:
    if told is None:
        return None
    if card in told.cited:
        return UseRead.CITED
    return UseRead.SHOWN if any(one.card == card for one in told.shown) else UseRead.NOT_SHOWN


def _use(
    store: Store,
    config: RunConfig,
    state: AttemptState,
    pin: PanelTask,
    held_out: HeldOut,
    controls: Mapping[tuple[str, str, int], Control],
) -> _Measured | str:
    """What one attempt came to, or why it says nothing."""
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
    told = state.attempt.knowledge if state.attempt is not None else None
    if does is None and (told is None or not told.cited):
        return _NO_LEVER
    speed = speed_of(graded.speedup) if graded.speedup is not None else None
    aim = Aim.SPEED if receipt.receipt.timing is not None else Aim.CORRECTNESS
    paired = controls.get((state.task, graded.device, state.number)) if aim is Aim.CORRECTNESS else None
    if aim is Aim.CORRECTNESS and paired is None:
        if told is not None and told.arm is Arm.COLD:
            return "it is the control of its pair"
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
        grade_sha256=digest_of(folder / GRADE),
        attempt_sha256=digest_of(folder / ATTEMPT),
        receipt=receipt.blob,
    )
    family = graded.device.partition(":")[0]
    key = Key(aim, does.lever, operator_of(task), does.languages, family) if does is not None else None
    return _Measured(key, aim, use, told, toolchain_of(graded.environment or receipt.receipt.environment))


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


def speed_of(timing: Timing) -> Speed:
    """A measured speed-up without the times that it was made of."""
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


def toolchain_of(used: UsedEnvironment | None) -> dict[str, str]:
    """Versions of what compiles kernels."""
    return {name: used.packages[name] for name in COMPILERS if name in used.packages} if used is not None else {}


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


def wins(uses: Iterable[Use]) -> list[Use]:
    """Those that won."""
    return [use for use in uses if use.outcome is UseOutcome.WIN]
