"""Did what some attempts were shown help them? Pairs of attempts at one task, of which chance showed one the cards.

Because chance drew the arms, pair by pair, a sign flip test over pairs (Fisher 1935) is exact for "it made no
difference to these attempts", however alike attempts, tasks and lineages are. How large the difference is at *other*
tasks is told by intervals over lineages, whose tasks are alike; each lineage counts once. Where all pairs are of one
lineage the intervals are over pairs, and speak of that lineage alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from smith.records.base import Record
from smith.score.compare import LEVEL, paired_interval
from smith.score.trials import Trial

ENOUGH = 6
"""Pairs from which on a figure is given for one card: with fewer, not even a card that decides every attempt can be
told from chance at the 5 % level (2 / 2^5 > 0.05)."""

FLIPS = 20_000
"""Signs that are drawn at most; fewer ways than these are all counted."""


@dataclass(frozen=True)
class Pair:
    """Two attempts at one task: one was shown ``cards``, the other was not."""

    task: str
    lineage: str
    shown: Trial
    cold: Trial
    cards: tuple[str, ...] = ()
    cited: tuple[str, ...] = field(default=())
    """Those of the cards that the one that was shown them says it used."""


class Answer(StrEnum):
    """What a comparison tells."""

    HELPS = "helps"
    HARMS = "harms"
    MIXED = "mixed"
    """Better in one figure and worse in the other."""
    NOTHING = "nothing"
    """No difference can be told from chance."""


class Difference(Record):
    """Shown against cold. ``low`` and ``high`` are a 95 % interval, null where too few tell."""

    value: float
    low: float | None
    high: float | None
    pairs: int
    tasks: int
    lineages: int
    over: str
    """What the interval is over: ``lineages``, or ``pairs`` where there is one lineage only."""
    p_value: float | None = None
    """Two-sided, of the sign flip test over pairs; corrected where several are asked. Null where none is made."""


class Effect(Record):
    """What showing cards did."""

    answer: Answer
    solved_shown: float
    """Share of attempts that solved: as every figure the mean over lineages of that over tasks of that over pairs."""
    solved_cold: float
    solved: Difference
    """Difference in the share solved."""
    speed: Difference | None
    """How many times as fast, over pairs that both solved and were timed; 1 is no difference."""
    usd: Difference
    """Dollars an attempt more."""
    tokens: Difference
    """Tokens an attempt more."""


class CardEffect(Record):
    """What showing one card did. ``effect`` is null where there are fewer than :data:`ENOUGH` pairs."""

    card: str
    pairs: int
    cited: int
    """Attempts that were shown it and say that they used it."""
    effect: Effect | None


class Uplift(Record):
    """All pairs together, and card by card; the p-values of cards are corrected for how many cards there are."""

    effect: Effect
    cited: int
    """Attempts that were shown cards and cited one."""
    cards: tuple[CardEffect, ...]


def uplift(pairs: Sequence[Pair]) -> Uplift:
    """What showing cards did in these pairs. Raises :class:`ValueError` where there are none."""
    if not pairs:
        raise ValueError("there is no pair")
    by_card: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        for card in pair.cards:
            by_card[card].append(pair)
    enough = {card: _measured(some) for card, some in sorted(by_card.items()) if len(some) >= ENOUGH}
    told = _answered(enough)
    return Uplift(
        effect=_answered({"": _measured(pairs)})[""],
        cited=sum(bool(pair.cited) for pair in pairs),
        cards=tuple(
            CardEffect(card=card, pairs=len(some), cited=sum(card in p.cited for p in some), effect=told.get(card))
            for card, some in sorted(by_card.items())
        ),
    )


def _measured(pairs: Sequence[Pair]) -> Effect:
    """Every figure, with p-values that are not corrected yet."""
    both = [p for p in pairs if p.shown.solved and p.cold.solved and p.shown.speedup and p.cold.speedup]
    return Effect(
        answer=Answer.NOTHING,
        solved_shown=_level(pairs, lambda p: p.shown),
        solved_cold=_level(pairs, lambda p: p.cold),
        solved=_difference(pairs, lambda p: float(p.shown.solved - p.cold.solved), _of_shares, test=True),
        speed=_ratio(_difference(both, _log_ratio, _of_values, test=True)) if both else None,
        usd=_difference(pairs, lambda p: (p.shown.usd_micros - p.cold.usd_micros) / 1e6, _of_values),
        tokens=_difference(pairs, lambda p: float(p.shown.tokens - p.cold.tokens), _of_values),
    )


def _level(pairs: Sequence[Pair], arm: Callable[[Pair], Trial]) -> float:
    lineages = _grouped(pairs, lambda pair: float(arm(pair).solved))
    return _mean(_mean(_mean(some) for some in tasks.values()) for tasks in lineages.values())


def _grouped(pairs: Sequence[Pair], value: Callable[[Pair], float]) -> Mapping[str, Mapping[str, Sequence[float]]]:
    """A value of each pair, by lineage and task."""
    lineages: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        lineages[pair.lineage][pair.task].append(value(pair))
    return lineages


def _log_ratio(pair: Pair) -> float:
    return math.log(pair.shown.speedup or 1.0) - math.log(pair.cold.speedup or 1.0)


Interval = Callable[[Sequence[float]], tuple[float | None, float | None]]


def _difference(
    pairs: Sequence[Pair], value: Callable[[Pair], float], interval: Interval, *, test: bool = False
) -> Difference:
    """The mean over lineages of the mean over tasks of the mean over pairs."""
    lineages = _grouped(pairs, value)
    means = [_mean([_mean(some) for some in tasks.values()]) for tasks in lineages.values()]
    alone = len(means) == 1
    low, high = interval(
        [v for tasks in lineages.values() for some in tasks.values() for v in some] if alone else means
    )
    # Each pair with its weight in the mean: the test asks about the very figure that is shown.
    weighted = [
        v / (len(lineages) * len(tasks) * len(some))
        for tasks in lineages.values()
        for some in tasks.values()
        for v in some
    ]
    return Difference(
        value=_mean(means),
        low=low,
        high=high,
        pairs=len(pairs),
        tasks=sum(len(tasks) for tasks in lineages.values()),
        lineages=len(lineages),
        over="pairs" if alone else "lineages",
        p_value=_sign_flips(weighted) if test else None,
    )


def _of_shares(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Agresti and Min's interval, as :mod:`smith.score.compare` has it: it is no point where all pairs agree."""
    low, high, _ = paired_interval(values)
    return low, high


def _of_values(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Student's interval of the mean."""
    n = len(values)
    if n < 2:
        return None, None
    from scipy.stats import t

    middle = _mean(values)
    half = float(t.ppf(0.975, n - 1)) * math.sqrt(sum((v - middle) ** 2 for v in values) / (n - 1) / n)
    return middle - half, middle + half


def _ratio(logs: Difference) -> Difference:
    ends = {name: None if end is None else math.exp(end) for name, end in (("low", logs.low), ("high", logs.high))}
    return logs.model_copy(update={"value": math.exp(logs.value), **ends})


def _answered(effects: Mapping[str, Effect]) -> dict[str, Effect]:
    """Correct all p-values together by Holm's procedure (1979), and answer each."""
    asked = [(key, name, part) for key, effect in effects.items()
             for name in ("solved", "speed") if (part := getattr(effect, name)) is not None]  # fmt: skip
    asked.sort(key=lambda one: one[2].p_value)
    found, least = dict(effects), 0.0
    for rank, (key, name, part) in enumerate(asked):
        least = max(least, min(1.0, (len(asked) - rank) * part.p_value))
        found[key] = found[key].model_copy(update={name: part.model_copy(update={"p_value": least})})
    return {key: effect.model_copy(update={"answer": _answer(effect)}) for key, effect in found.items()}


def _answer(effect: Effect) -> Answer:
    signs = set()
    for part, none in ((effect.solved, 0.0), (effect.speed, 1.0)):
        if part is not None and part.p_value is not None and part.p_value < LEVEL and part.value != none:
            signs.add(part.value > none)
    if not signs:
        return Answer.NOTHING
    if len(signs) == 2:
        return Answer.MIXED
    return Answer.HELPS if True in signs else Answer.HARMS


def _mean(values: Iterable[float]) -> float:
    some = list(values)
    return sum(some) / len(some)


def _sign_flips(differences: Sequence[float]) -> float:
    """How often so large a mean comes of differences whose signs are drawn; exact for up to :data:`FLIPS` ways."""
    import numpy as np
    from scipy.stats import permutation_test

    told = np.asarray([d for d in differences if d])
    if told.size < 2:  # of one difference both signs are as large, and scipy takes none of one value
        return 1.0
    found = permutation_test(
        (told,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=FLIPS,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)
