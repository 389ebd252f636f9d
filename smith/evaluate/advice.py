"""Cards for the attempts of a run: drawn arms, the part of the instruction that shows them, and what was cited.

Which cards there are for a task is settled when a run begins and lies in its folder, so a resume shows the same cards
whatever became of the knowledge base meanwhile.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smith.errors import RecordError
from smith.evaluate.agents.start import rendered
from smith.paths import Layout
from smith.records.attempt import RunConfig
from smith.records.base import read
from smith.records.shown import Arm, FrozenCard, RunCards, RunKnowledge, ShownCard, Told

CARDS_FILE = "knowledge.json"
PROMPT = "shown-cards.md.j2"
CITED = "CITED"
"""The file in scratch space in which an agent names the cards that it used."""
_LARGEST_CITED = 1 << 16
_CARD = re.compile(r"(?<![0-9a-f])[0-9a-f]{12}(?![0-9a-f])")


def arm_of(mode: str, seed: int, task: str, number: int) -> Arm:
    """The arm of an attempt at a task that there are cards for.

    With ``ab`` attempts 1 and 2, 3 and 4, ... are pairs, of which one is shown the cards; the seed draws which
    (permuted blocks of two), so every pair is a comparison at one task.
    """
    if mode == "on":
        return Arm.SHOWN
    pair, second = divmod(number - 1, 2)
    drawn = hashlib.sha256(f"{seed}/{task}/{pair}".encode()).digest()[0] & 1
    return Arm.SHOWN if second == drawn else Arm.COLD


@dataclass(frozen=True)
class Advice:
    """What the attempts of one run are shown."""

    settings: RunKnowledge
    chosen: RunCards

    @classmethod
    def of(cls, layout: Layout, config: RunConfig) -> Advice | None:
        """Read what was settled when the run began; None for a run without.

        Raises :class:`RecordError` where the file is gone or is not the one that the run began with.
        """
        if config.knowledge is None:
            return None
        path = layout.run(config.run) / CARDS_FILE
        data = read(path)
        if hashlib.sha256(data).hexdigest() != config.knowledge.cards_sha256:
            raise RecordError(
                f"{path}: is not what the run began with", hint="put the file back, or start the run again"
            )
        return cls(config.knowledge, RunCards.loads(data, str(path)))

    def give(self, task: str, number: int, prompts: Path, cited: str) -> tuple[str, Told]:
        """What an attempt's instruction says besides, and the record of it; ``cited`` is the path of its file.

        Raises :class:`smith.errors.BadInput` for a prompt that cannot be rendered.
        """
        cards = self.chosen.tasks[task].cards if task in self.chosen.tasks else ()
        if not cards:
            return "", Told(arm=Arm.NOTHING)
        known = tuple(_shown(card) for card in cards)
        if arm_of(self.settings.mode, self.settings.seed, task, number) is Arm.COLD:
            return "", Told(arm=Arm.COLD, withheld=known)
        text = rendered(PROMPT, prompts, cards=[card.text.strip() for card in cards], cited=cited)
        return text, Told(arm=Arm.SHOWN, shown=known, prompt_sha256=_digest(text))


def _shown(card: FrozenCard) -> ShownCard:
    return ShownCard(card=card.card, file_sha256=card.file_sha256, text_sha256=_digest(card.text))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def cited_in(scratch: Path, shown: Sequence[ShownCard]) -> tuple[str, ...]:
    """Which of the shown cards the file ``CITED`` names. What an agent left there is read without following links."""
    try:
        fd = os.open(scratch / CITED, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ()
    with os.fdopen(fd, "rb") as opened:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ()
        text = opened.read(_LARGEST_CITED).decode("utf-8", "replace")
    return tuple(sorted({card.card for card in shown} & set(_CARD.findall(text))))
