"""How likely a lever is to help once more: a Beta posterior over its counted uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from smith.records.base import Record
from smith.records.card import Counts, Origin
from smith.records.sealed import UseOutcome

LEVEL = 0.95


class Posterior(Record):
    """Beta(1 + wins, 1 + losses and no-effects): mean, and the central interval of 95 %.

    The prior is uniform: of a lever that was never used nothing is known.
    """

    counts: Counts
    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        uses = self.counts.wins + self.counts.others
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f}), {self.counts.wins} wins of {uses}"


def posterior(counts: Counts) -> Posterior:
    """The posterior of ``counts``."""
    mean, low, high = _beta(counts.wins, counts.others)
    return Posterior(counts=counts, mean=mean, low=low, high=high)


@lru_cache(maxsize=4096)
def _beta(wins: int, others: int) -> tuple[float, float, float]:
    from scipy.special import betaincinv  # takes a third of a second to import

    a, b, tail = 1.0 + wins, 1.0 + others, (1 - LEVEL) / 2
    return a / (a + b), float(betaincinv(a, b, tail)), float(betaincinv(a, b, 1 - tail))


def count(outcomes: Iterable[UseOutcome]) -> Counts:
    """How many of each outcome."""
    some = list(outcomes)
    return Counts(
        wins=some.count(UseOutcome.WIN), losses=some.count(UseOutcome.LOSS), no_effects=some.count(UseOutcome.NO_EFFECT)
    )


def total(counts: Mapping[Origin, Counts]) -> Counts:
    """The uses of all origins together."""
    return Counts(
        wins=sum(c.wins for c in counts.values()),
        losses=sum(c.losses for c in counts.values()),
        no_effects=sum(c.no_effects for c in counts.values()),
    )
