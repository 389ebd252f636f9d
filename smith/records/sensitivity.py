"""How much the tests of a task see: small faults planted in its reference, and what became of each."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from smith.records.base import Record
from smith.records.results import Failure
from smith.records.shapes import SeenInCalls, ShapeTrial

MAX_DIFF = 4000
"""Characters of a survivor's diff that are kept."""


class Fate(StrEnum):
    """What became of a planted fault. Only ``caught`` and ``survived`` count."""

    CAUGHT = "caught"
    """A test that counts does not pass on it."""
    SURVIVED = "survived"
    """Every test passes on it."""
    TRIVIAL = "trivial"
    """It cannot be parsed or imported, which any test would notice."""
    VOID = "void"
    """It could not be tried: it does not build, or the run did not end."""
    SAME = "same"
    """No fault: without this hunk the program is the same, or is the start itself, on which the tests fail anyhow."""
    NOT_TRIED = "not_tried"
    """The time was used up before its turn."""


class PlantedFault(Record):
    """One fault. ``operator`` is ``hunk_reverted`` for a hunk; of mutants they are listed in docs/validation.md."""

    name: str
    kind: Literal["hunk", "mutant"]
    operator: str
    file: str
    line: int
    """In the solution, from 1; 0 where it has none."""
    kernel: str = Field(default="", exclude_if=lambda name: not name)
    """The kernel that it lies in."""
    fate: Fate
    caught_by: str = Field(default="", exclude_if=lambda test: not test)
    """The first test that does not pass on it."""
    failure: Failure | None = Field(default=None, exclude_if=lambda failure: failure is None)
    """How that test fails, where it is told."""
    detail: str = Field(default="", exclude_if=lambda words: not words)
    diff: str = Field(default="", exclude_if=lambda words: not words)
    """Of a survivor: what leads from the solution to it, cut at 4,000 characters."""
    seed: int | None = Field(default=None, exclude_if=lambda seed: seed is None)
    """Of a survivor: with seeds moved by so much a test that the solution passes so does not pass on it."""
    seed_test: str = Field(default="", exclude_if=lambda test: not test)
    """That test."""
    in_calls: SeenInCalls | None = Field(default=None, exclude_if=lambda seen: seen is None)
    """Of a survivor: where recorded calls, varied or not, show it."""
    seconds: float = 0.0


class Sensitivity(Record):
    """What became of all faults that were planted in the reference of one task."""

    faults: tuple[PlantedFault, ...]
    mutants: int
    """How many were asked for."""
    sites: int
    """Places and ways in which the reference could have been made wrong."""
    budget_s: float
    seeds: tuple[int, ...] = Field(default=(), exclude_if=lambda seeds: not seeds)
    """By how much seeds were moved when every survivor was tried again."""
    shapes: ShapeTrial | None = Field(default=None, exclude_if=lambda shapes: shapes is None)
    """What survivors were held against besides, where calls had been recorded."""
    seconds: float = 0.0

    def count(self, fate: Fate) -> int:
        """How many ended so."""
        return sum(1 for fault in self.faults if fault.fate is fate)

    @property
    def share(self) -> float | None:
        """Caught of caught and survived; None where nothing counts."""
        caught, survived = self.count(Fate.CAUGHT), self.count(Fate.SURVIVED)
        return round(caught / (caught + survived), 4) if caught + survived else None

    @property
    def survivors(self) -> tuple[PlantedFault, ...]:
        """Those that no test saw."""
        return tuple(fault for fault in self.faults if fault.fate is Fate.SURVIVED)

    def adds_to(self, other: Sensitivity | None) -> bool:
        """Whether it says anything that ``other`` does not, or says it otherwise."""
        known = {f.name: f.fate for f in other.faults} if other else {}
        tried = [fault for fault in self.faults if fault.fate is not Fate.NOT_TRIED]
        new = any(known.get(fault.name) is not fault.fate for fault in tried)
        shapes = self.shapes is not None and (other is None or other.shapes is None)
        return other is None or new or shapes or not set(self.seeds) <= set(other.seeds)

    def __str__(self) -> str:
        """In a few words, for a line of the terminal."""
        counted = self.count(Fate.CAUGHT) + self.count(Fate.SURVIVED)
        others = [f"{self.count(fate)} {fate.value.replace('_', ' ')}" for fate in Fate if fate not in _COUNTED]
        rest = ", ".join(words for words in others if not words.startswith("0 "))
        seeded = sum(1 for fault in self.survivors if fault.seed is not None)
        more = f"; with other seeds {seeded} more would be" if seeded else ""
        caught = f"{self.count(Fate.CAUGHT)} of {counted} planted faults caught"
        return f"{caught}{f' ({rest})' if rest else ''}{more}{self._shaped()}"

    def _shaped(self) -> str:
        """What recorded calls show of the survivors, in a few words."""
        if self.shapes is None:
            return ""
        seen = [fault.in_calls for fault in self.survivors if fault.in_calls is not None]
        names = ", ".join(dict.fromkeys(seen.variants[0] for seen in seen if seen.only_shapes))
        only = sum(seen.only_shapes for seen in seen)
        some = f", {only} of them only in other shapes ({names})" if only else ""
        return f"; recorded calls show {len(seen)} of {self.shapes.survivors} survivors{some}"


_COUNTED = (Fate.CAUGHT, Fate.SURVIVED)
