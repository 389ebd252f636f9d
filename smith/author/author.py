"""Authoring a task: investigate, design, judge, review, repair, until a design stands or the attempts are used up.

The gates decide; a review is advice that makes a repair be tried. A repair that does not pass the gates leaves the
design that did. Until the end nothing is written but answers and the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from smith.author.ask import Asker, NoAnswer
from smith.author.compose import repaired
from smith.author.judge import Judge, Judgement
from smith.author.roles import Roles
from smith.records.authoring import Design, ReviewFault

DEFAULT_ATTEMPTS = 3


@dataclass(frozen=True)
class Attempt:
    """One design and what became of it."""

    number: int
    accepted: bool
    reasons: tuple[str, ...] = ()
    extra_tests: int = 0
    wrong: int = 0
    alternatives: int = 0


@dataclass
class Outcome:
    """What authoring came to. ``judgement`` and ``number`` are those of the accepted design; None where none was."""

    attempts: list[Attempt] = field(default_factory=list)
    judgement: Judgement | None = None
    number: int = 0
    open_faults: tuple[ReviewFault, ...] = ()
    notes: list[str] = field(default_factory=list)


class Authoring:
    """One authoring; ``aside`` is a folder for the bundles that are tried."""

    def __init__(
        self, roles: Roles, asker: Asker, judge: Judge, *, attempts: int, aside: Path, say: Callable[[str], None]
    ) -> None:
        self.roles, self.asker, self.judge = roles, asker, judge
        self.attempts, self.aside, self.say = attempts, aside, say
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Go through the roles. Raises what the client and the ledger raise; what was answered so far is kept."""
        try:
            design = self._first_design()
        except NoAnswer as error:
            self.outcome.notes.append(f"no answer was accepted: {error}")
            return self.outcome
        for number in range(1, self.attempts + 1):
            reasons = self._judge(number, design)
            if not reasons or number == self.attempts:
                break
            try:
                if not self.asker.has("repair", number + 1):
                    self.outcome.notes.append(f"nobody prepared a repair of design {number}")
                    break
                answer = self.asker.ask(self.roles.repair(number + 1, design, reasons))
            except NoAnswer as error:
                self.outcome.notes.append(f"no answer was accepted: {error}")
                break
            assert answer.repair is not None
            design = repaired(design, answer.repair)
        return self.outcome

    def _first_design(self) -> Design:
        investigation = None
        if self.asker.has("investigate", 1):
            investigation = self.asker.ask(self.roles.investigate()).investigate
        design = self.asker.ask(self.roles.design(investigation)).design
        assert design is not None
        return design

    def _judge(self, number: int, design: Design) -> list[str]:
        """Put design ``number`` through the gates and, where it passes, through a review.

        Gives what a repair should mend; nothing where the design stands as it is.
        """
        self.say(f"design {number}: gates")
        judgement = self.judge.judge(design, self.aside / f"{number:02d}")
        reasons = tuple(map(str, judgement.reasons))
        parts = (len(design.tests), len(design.wrong), len(design.alternatives))
        self.outcome.attempts.append(Attempt(number, judgement.accepted, reasons, *parts))
        if not judgement.accepted:
            return list(reasons)
        self.outcome.judgement, self.outcome.number = judgement, number
        self.outcome.open_faults = ()
        assert judgement.staged is not None
        if not self.asker.has("review", number):
            self.outcome.notes.append(f"design {number} was not reviewed")
            return []
        try:
            review = self.asker.ask(self.roles.review(number, design, judgement.staged)).review
        except NoAnswer as error:
            self.outcome.notes.append(f"no review was accepted: {error}")
            return []
        assert review is not None
        self.outcome.open_faults = review.faults
        return [_told(fault) for fault in review.faults if fault.severity == "blocking"]


def _told(fault: ReviewFault) -> str:
    suggested = f" Suggested: {fault.suggestion}" if fault.suggestion else ""
    return f"review of {fault.document}: {fault.problem} (at {fault.quote!r}){suggested}"
