"""What showing cards did in runs with ``--knowledge ab``: from their evidence to pairs, and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from smith.errors import BadInput
from smith.evaluate.advice import arm_of
from smith.evaluate.run import AttemptState, states
from smith.freeze.lineages import lineage_of, lineages
from smith.knowledge.effects import COUNTED
from smith.paths import Layout
from smith.records.attempt import RunConfig
from smith.records.base import Record
from smith.records.grade import GradeVerdict
from smith.records.shown import Arm, Told
from smith.score.trials import Trial
from smith.score.uplift import Answer, CardEffect, Difference, Effect, Pair, Uplift, uplift

_UNGRADED = (None, GradeVerdict.INFRA)


class RunsUplift(Record):
    """What ``smith knowledge uplift`` prints."""

    runs: tuple[str, ...]
    agents: tuple[str, ...]
    """Agent and model of each run, each once."""
    uplift: Uplift
    left_out: dict[str, int] = {}
    """Pairs that say nothing, by why."""
    harmful: dict[str, str] = {}
    """Cards that harm, each with the command that takes it back."""
    notes: tuple[str, ...] = ()


def uplift_of(layout: Layout, configs: Sequence[RunConfig]) -> RunsUplift:
    """Compare the arms of runs, all pairs together.

    Raises :class:`BadInput` for a run whose arms were not drawn, one that is named twice, or where no pair is whole.
    """
    names = [config.run for config in configs]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise BadInput(f"{twice} is named twice", hint="see: smith runs")
    for config in configs:
        if config.knowledge is None or config.knowledge.mode != "ab":
            raise BadInput(
                f"nobody drew who was shown cards in {config.run}",
                hint="smith eval PANEL --knowledge ab --attempts 2; runs that differ otherwise: smith compare",
            )
        if config.attempts % 2:
            raise BadInput(
                f"{config.run} has {config.attempts} attempts a task: they are no pairs", hint="see its run.json"
            )
    left_out: Counter[str] = Counter()
    pairs = [pair for config in configs for pair in pairs_of(layout, config, left_out)]
    if not pairs:
        why = ", ".join(f"{count} x {why}" for why, count in sorted(left_out.items()))
        raise BadInput(f"there is no pair to compare: {why}", hint=f"smith resume {names[0]}")
    found = uplift(pairs)
    agents = dict.fromkeys(f"{c.agent} with {c.model}" for c in configs)
    return RunsUplift(
        runs=tuple(names),
        agents=tuple(agents),
        uplift=found,
        left_out=dict(sorted(left_out.items())),
        harmful={
            one.card: f'smith knowledge retract {one.card} --reason "{_reason(one.effect)}"'
            for one in found.cards
            if one.effect is not None and one.effect.answer is Answer.HARMS
        },
        notes=tuple(_notes(found, agents)),
    )


def pairs_of(layout: Layout, config: RunConfig, left_out: Counter[str]) -> Iterator[Pair]:
    """The whole pairs of one run; what is left out is counted by why."""
    known, settings = lineages(layout), config.knowledge
    assert settings is not None
    found = states(layout, config)
    for first, second in zip(found[::2], found[1::2], strict=True):
        made = _pair(first, second, settings.seed)
        if isinstance(made, str):
            left_out[made] += 1
            continue
        shown, cold, told = made
        yield Pair(
            task=shown.task,
            lineage=lineage_of(known, shown.task),
            shown=_trial(shown),
            cold=_trial(cold),
            cards=tuple(card.card for card in told.shown),
            cited=told.cited,
        )


def _pair(first: AttemptState, second: AttemptState, seed: int) -> tuple[AttemptState, AttemptState, Told] | str:
    """Who of a pair was shown cards, who was not, and what; or why it says nothing."""
    by_arm: dict[Arm, AttemptState] = {}
    told: Told | None = None
    for state in (first, second):
        if state.attempt is None or state.grade is None or state.grade.verdict in _UNGRADED:
            return "an attempt has no grade yet"
        given = state.attempt.knowledge
        if given is None:
            return "what an attempt was shown is not recorded"
        if given.arm is Arm.NOTHING:
            return "there was no card for its task"
        if given.arm is not arm_of("ab", seed, state.task, state.number):
            return "an attempt is not in the arm that was drawn"
        by_arm[given.arm] = state
        told = given if given.arm is Arm.SHOWN else told
    assert told is not None
    return by_arm[Arm.SHOWN], by_arm[Arm.COLD], told


def _trial(state: AttemptState) -> Trial:
    attempt, graded = state.attempt, state.grade
    assert attempt is not None and graded is not None
    timed = graded.speedup is not None and graded.verdict in COUNTED
    return Trial(
        verdict=graded.verdict,
        speedup=graded.speedup.geomean if timed and graded.speedup is not None else None,
        usd_micros=attempt.micro_usd,
        tokens=attempt.input_tokens + attempt.output_tokens,
        seconds=attempt.seconds + graded.seconds,
    )


def _reason(effect: Effect) -> str:
    """Why a card that harms is taken back, as a card may say it."""
    solved, speed = effect.solved, effect.speed
    if solved.value < 0:
        ends = f" ({solved.low:+.2f} to {solved.high:+.2f})"
        return f"Agents that were shown it solved less: {solved.value:+.2f}{ends} over {solved.pairs} pairs."
    assert speed is not None
    return f"Agents that were shown it wrote slower code: {ratio_words(speed)} over {speed.pairs} pairs."


def ratio_words(found: Difference) -> str:
    """``1.20x (1.05 to 1.40)``."""
    ends = "" if found.low is None or found.high is None else f" ({found.low:.2f} to {found.high:.2f})"
    return f"{found.value:.2f}x{ends}"


def _notes(found: Uplift, agents: Sequence[str] | dict[str, str | None]) -> Iterator[str]:
    solved = found.effect.solved
    if solved.lineages == 1:
        yield "all pairs are of one lineage: nothing is said of other tasks"
    if len(agents) > 1:
        yield f"{len(agents)} agents or models are put together: {'; '.join(agents)}"
    few = sum(one.effect is None for one in found.cards)
    if few and len(found.cards) > 1:
        yield f"{few} cards were shown in too few pairs to say anything of each"


def sentence(effect: Effect) -> str:
    """The answer in words."""
    solved = effect.solved
    n = f"n = {solved.pairs} pairs, {solved.tasks} task{'s' * (solved.tasks != 1)}"
    if effect.answer is Answer.NOTHING:
        return f"no difference can be told from chance: {n}"
    said = {
        Answer.HELPS: "showing cards helps",
        Answer.HARMS: "showing cards harms",
        Answer.MIXED: "better in one, worse in the other",
    }
    return f"{said[effect.answer]}: {n}"


def effect_lines(effect: Effect) -> Iterator[tuple[str, str, str]]:
    """Name, figure with interval, and p-value of each comparison."""
    s = effect.solved
    yield (
        "solved",
        f"{effect.solved_shown:.0%} shown, {effect.solved_cold:.0%} cold: {s.value * 100:+.1f} points"
        f" ({(s.low or 0) * 100:+.1f} to {(s.high or 0) * 100:+.1f})",
        _p(s),
    )
    if effect.speed is not None:
        yield "speed", f"{ratio_words(effect.speed)} over {effect.speed.pairs} pairs that both solved", _p(effect.speed)
    for name, part, words in (("cost", effect.usd, _dollars), ("tokens", effect.tokens, "{:+,.0f}".format)):
        ends = ""
        if part.low is not None and part.high is not None:
            ends = f" ({words(part.low)} to {words(part.high)})"
        yield name, f"{words(part.value)}{ends} an attempt", ""


def _dollars(value: float) -> str:
    return f"{'-' if value < 0 else '+'}${abs(value):.4f}"


def _p(found: Difference) -> str:
    if found.p_value is None:
        return ""
    return f"p = {found.p_value:.3f}" if found.p_value >= 0.001 else "p < 0.001"


def card_line(one: CardEffect) -> str:
    """One card in a line."""
    head = f"{one.card}  {one.pairs} pairs, cited {one.cited}"
    if one.effect is None:
        return f"{head}: too few to say"
    solved = one.effect.solved
    words = f"{solved.value * 100:+.1f} points ({(solved.low or 0) * 100:+.1f} to {(solved.high or 0) * 100:+.1f})"
    if one.effect.speed is not None:
        words += f", {ratio_words(one.effect.speed)}"
    return f"{head}: {words}; {one.effect.answer.value}"
