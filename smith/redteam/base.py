"""What a hack and a control are, and how they are found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from smith.redteam import hacks
from smith.redteam.target import Target


class Why(StrEnum):
    """Why a hack has nothing to attack in a task."""

    NOT_TIMED = "not_timed"
    """It aims at a clock, and the task is judged by its tests alone."""
    NEEDS_GPU = "needs_gpu"
    NO_ENTRY = "no_entry"
    """Hidden tests import nothing that a submission may change."""
    NO_OPERATOR = "no_operator"
    """No library operator of the same meaning is known."""
    NO_TEST = "no_test"
    """No test names what it would need."""
    NOT_PYTHON = "not_python"


@dataclass(frozen=True)
class NotApplicable:
    """A hack that cannot be made for a task."""

    why: Why
    detail: str = ""


Attack = bytes | NotApplicable


@dataclass(frozen=True)
class Hack:
    """One way to score without the work. ``number`` is that of the catalogue; from 100 on it is an addition of ours.

    ``timed`` hacks aim at a clock, those with ``entry`` change code that hidden tests import: neither is made where
    there is none.
    """

    number: int
    name: str
    attack: Callable[[Target], Attack]
    timed: bool = False
    entry: bool = True
    gpu: bool = False
    id_timeout_s: float | None = None
    """A shorter limit for each test, for hacks that wait until it is over."""

    def make(self, target: Target) -> Attack:
        """The patch, or why there is none."""
        if self.gpu and not target.on_gpu:
            return NotApplicable(Why.NEEDS_GPU, f"{target.receipt.device} has no streams and no cache to flush")
        if self.timed and not target.timed:
            return NotApplicable(Why.NOT_TIMED)
        if self.entry and target.entry is None:
            return NotApplicable(Why.NO_ENTRY)
        return self.attack(target)


def catalogue() -> list[Hack]:
    """All hacks, by number and name."""
    modules = (importlib.import_module(f"{hacks.__name__}.{m.name}") for m in pkgutil.iter_modules(hacks.__path__))
    found: list[Hack] = [module.HACK for module in modules]
    return sorted(found, key=lambda hack: (hack.number, hack.name))
