"""What survivors of planted faults did in recorded calls, as they were recorded and in other shapes."""

from __future__ import annotations

from pydantic import Field

from smith.records.base import Record


def _nothing(value: object) -> bool:
    return not value


class VariantTried(Record):
    """One way to vary calls (``recorded`` is none), and in how many of them the reference has an answer."""

    name: str
    """One of those that ``smith.oracle.shapes`` has; listed in docs/validation.md."""
    calls: int
    """Calls that it was tried on."""
    refused: dict[str, int] = Field(default={}, exclude_if=_nothing)
    """Calls that no survivor is held against, by reason: the reference raises (``not_replayable``), does not repeat
    itself, depends on the layout, takes too long, or there is no such variant of the call (``none``)."""

    @property
    def used(self) -> int:
        """Calls that survivors were held against."""
        return self.calls - sum(self.refused.values())


class ShapeTrial(Record):
    """What was tried with the survivors of one task. The share of faults caught is that of its tests, without this."""

    workload: str
    """SHA-256 of the recorded calls."""
    calls: int
    """How many of them were varied."""
    seed: int
    """From which their values were drawn."""
    variants: tuple[VariantTried, ...]
    survivors: int
    """How many were tried before the time was used up."""
    seconds: float = 0.0

    def __str__(self) -> str:
        """In a few words: which variants there were."""
        return ", ".join(f"{one.name} {one.used}/{one.calls}" for one in self.variants)


class SeenInCalls(Record):
    """Of a survivor: that it differs from the reference in recorded calls, though no test tells them apart."""

    variants: tuple[str, ...]
    """In which it does, in the order in which they were tried."""
    call: str
    """The first such call."""
    difference: str
    """In what it differs there."""

    @property
    def only_shapes(self) -> bool:
        """Whether it takes another shape or layout: with those that the tests have, nothing shows."""
        return "recorded" not in self.variants
