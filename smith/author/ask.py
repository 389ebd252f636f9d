"""One question to one role: answered from what is kept, else by the model; checked, and asked once more if need be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smith.author.answers import Answers
from smith.author.client import Called, Client
from smith.author.dialects import Message
from smith.author.extract import json_object
from smith.author.prompts import again_prompt
from smith.errors import BadInput, RecordError
from smith.records.authoring import RECORDS, Answer, Design, Investigation, Repair, Review, Role

TRIES = 2
"""The question, and once more with what was wrong."""
_MOST_SHOWN = 20_000
_MOST_FAULTS = 12

Said = Investigation | Design | Review | Repair
Check = Callable[[Any], list[str]]


class NoAnswer(Exception):
    """A role whose every try was refused; the faults are those of the last."""

    def __init__(self, role: Role, faults: Sequence[str]) -> None:
        super().__init__(f"{role}: {'; '.join(faults)}")
        self.role, self.faults = role, tuple(faults)


@dataclass(frozen=True)
class Question:
    """What a role is asked about design ``number``, and what its answer is checked by besides its schema."""

    role: Role
    number: int
    follows: str | None
    system: str
    prompt: str
    check: Check = lambda said: []
    salvage: Callable[[Any], Any] | None = None
    """What of a last answer stands although the check found faults."""


class Asker:
    """Asks: what somebody prepared comes first, then what was answered before, then the model (if there is one)."""

    def __init__(
        self, client: Client | None, kept: Answers, prepared: Answers | None, prompts: Path, say: Callable[[str], None]
    ) -> None:
        self.reused = 0
        """Answers so far that cost nothing."""
        self._client, self._kept, self._prepared = client, kept, prepared
        self._prompts, self._say = prompts, say

    def has(self, role: Role, number: int) -> bool:
        """Whether the model can be asked, or there is an answer."""
        stores = [store for store in (self._prepared, self._kept) if store is not None]
        return self._client is not None or any(store.path(role, number).is_file() for store in stores)

    def ask(self, question: Question) -> Answer:
        """The answer, kept in its file. Raises :class:`NoAnswer`, :class:`BadInput` where nobody can be asked, and what
        the client raises."""
        for store in filter(None, (self._prepared, self._kept)):
            answer = store.get(question.role, question.number, question.follows)
            if answer is None:
                continue
            faults = question.check(getattr(answer, question.role))
            if faults:
                raise NoAnswer(question.role, faults)
            self.reused += 1
            self._say(f"{question.role} {question.number}: kept answer")
            return answer
        if self._client is None:
            raise BadInput(
                f"nobody prepared {self._kept.path(question.role, question.number).name}, and no model is named",
                hint="give --model, or that file in --answers",
            )
        return self._call(self._client, question)

    def _call(self, client: Client, question: Question) -> Answer:
        messages = [Message("user", question.prompt)]
        spent: list[Called] = []
        faults: list[str] = []
        said: Said | None = None
        for number in range(TRIES):
            self._say(f"{question.role} {question.number}: asking the model")
            called = client.call(question.system, messages, name=f"{question.role}-{question.number}")
            spent.append(called)
            said, faults = self._read(question, called)
            if said is not None and not faults:
                break
            if number + 1 < TRIES:
                again = again_prompt(faults[:_MOST_FAULTS], self._prompts, cut=called.reply.cut)
                shown = called.reply.text[:_MOST_SHOWN] or "(nothing)"
                messages = [messages[0], Message("assistant", shown), Message("user", again)]
        if faults and said is not None and question.salvage is not None:
            said, faults = question.salvage(said), []
        if faults or said is None:
            raise NoAnswer(question.role, faults)
        answer = self._answer(client, question, said, spent)
        self._kept.put(answer)
        return answer

    def _read(self, question: Question, called: Called) -> tuple[Said | None, list[str]]:
        """The record in a reply, and what is wrong with it."""
        if called.reply.cut:
            return None, ["the answer was cut off at the cap of tokens"]
        data = json_object(called.reply.text)
        if data is None:
            return None, ["the answer is not one JSON object"]
        try:
            said: Said = RECORDS[question.role].parse(data, "the answer")
        except RecordError as error:
            return None, [error.message]
        return said, question.check(said)

    def _answer(self, client: Client, question: Question, said: Said, spent: Sequence[Called]) -> Answer:
        charges = [called.charge for called in spent]
        known = [charge for charge in charges if charge is not None]
        whole = len(known) == len(charges)
        fields: dict[str, Any] = {question.role: said}
        return Answer(
            task=self._kept.task,
            binding=self._kept.binding,
            role=question.role,
            number=question.number,
            follows=question.follows,
            model=client.settings.model,
            usd=sum(c.usd_micros for c in known) / 1e6 if whole else None,
            input_tokens=sum(c.input_tokens for c in known) if whole else None,
            output_tokens=sum(c.output_tokens for c in known) if whole else None,
            **fields,
        )
