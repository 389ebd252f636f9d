"""Calls of a model: each reserved at its ceiling before it leaves, settled at its usage after, retried by class.

What was surely not worked on (no connection, 429, 503, 529, a refused request) frees its hold. What may have been (a
broken answer, a time limit, 500, 502, 504, an answer without usage) keeps it, marked uncertain, until somebody
reconciles it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Any

from smith.author.dialects import Anthropic, Message, OpenAI, Reply, Unreadable
from smith.author.wire import Answer, Broken, NotSent, Wire
from smith.errors import BadInput, Unavailable
from smith.ledger import Amounts, Hold, Ledger, State
from smith.ledger.prices import Prices
from smith.models.retry import LONGEST_WAIT_S, SENDS, Class, backoff, classify, retry_after
from smith.records.base import to_json
from smith.secret import Token

FRAMING_TOKENS = 64
"""What an endpoint may add to a prompt for each turn: marks of roles and the like."""


@dataclass(frozen=True)
class Settings:
    """What is asked, of whom and how. Times in seconds."""

    model: str
    provider: str | None = None
    """For the list of prices, where one model's name means several."""
    max_output_tokens: int = 16_000
    timeout_s: float = 600.0
    """For one answer, from the first byte to the last."""


@dataclass(frozen=True)
class Called:
    """A reply with what it cost; ``charge`` is None where the endpoint did not say."""

    reply: Reply
    charge: Amounts | None


def ceiling_of(prices: Prices, settings: Settings, system: str, messages: Sequence[Message]) -> Amounts:
    """The most that a call may cost: a token is at least one byte, whatever the tokenizer.

    Raises :class:`smith.errors.UnknownPrice`.
    """
    texts = [system, *(m.text for m in messages)]
    return prices.ceiling(
        settings.model,
        input_tokens=sum(len(t.encode("utf-8", "replace")) for t in texts) + FRAMING_TOKENS * len(texts),
        max_output_tokens=settings.max_output_tokens,
        provider=settings.provider,
    )


class Client:
    """A model at an endpoint, paid from ``scope``; a context manager that closes its connections."""

    def __init__(
        self,
        url: str,
        key: Token | None,
        dialect: OpenAI | Anthropic,
        settings: Settings,
        *,
        ledger: Ledger,
        prices: Prices,
        scope: str,
        say: Callable[[str], None] = lambda text: None,
        sleep: Callable[[float], None] = time.sleep,
        random: Random | None = None,
    ) -> None:
        self.settings = settings
        self.sent = 0
        """Requests so far, those that were sent again among them."""
        self.uncertain = 0
        """Calls so far of which nobody knows what they cost."""
        self._key, self._dialect = key, dialect
        self._ledger, self._prices, self._scope = ledger, prices, scope
        self._say, self._sleep, self._random = say, sleep, random or Random()
        self._wire = Wire(url, key, timeout_s=settings.timeout_s)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.close()

    def call(self, system: str, messages: Sequence[Message], *, name: str) -> Called:
        """Ask once; ``name`` tells calls of one scope apart in the ledger.

        Raises :class:`smith.errors.BudgetRefused` before anything is sent, :class:`BadInput` where the endpoint refuses
        key, model or request, :class:`Unavailable` where it gives no answer.
        """
        fault, waited = "", 0.0
        for turn in range(SENDS):
            if turn:
                self._say(f"{fault}; trying again in {waited:.0f} s")
                self._sleep(waited)
            most = self.settings.max_output_tokens
            body = self._dialect.body(self.settings.model, system, messages, most)
            hold = self._reserve(body, system, messages, name)
            try:
                answer = self._send(body, hold)
            except NotSent as error:
                self._ledger.release(hold, why=str(error))
                fault, waited = str(error), self._backoff(turn)
                continue
            except Broken as error:
                self._lose(hold, str(error))
                fault, waited = str(error), self._backoff(turn)
                continue
            if answer.status == 200:
                called = self._read(answer, hold, most)
                if called is not None:
                    return called
                fault, waited = "an answer that is not of this dialect", self._backoff(turn)
                continue
            fault, waited = self._refused(answer, hold, turn)
        raise Unavailable(f"the endpoint gives no answer: {fault}", hint="what was answered so far is kept")

    def _reserve(self, body: dict[str, Any], system: str, messages: Sequence[Message], name: str) -> Hold:
        """A fresh hold for this request. One that a killed process left open may have been paid."""
        ceiling = ceiling_of(self._prices, self.settings, system, messages)
        digest = hashlib.sha256(to_json(body)).hexdigest()[:12]
        for number in range(1_000_000):
            hold = self._ledger.reserve(self._scope, ceiling, key=f"{self._scope}/{name}/{digest}.{number}")
            if hold.fresh:
                return hold
            if hold.state is State.OPEN:
                self._lose(hold, "the process that made this call ended before it was settled")
        raise AssertionError("unreachable")

    def _send(self, body: dict[str, Any], hold: Hold) -> Answer:
        self.sent += 1
        try:
            return self._wire.post(self._dialect.path, self._dialect.headers(self._key), body)
        except (NotSent, Broken):
            raise
        except BaseException:
            # An interrupt: the request may be under way.
            self._lose(hold, "interrupted before the answer came")
            raise

    def _read(self, answer: Answer, hold: Hold, most: int) -> Called | None:
        try:
            reply = self._dialect.read(answer.data, most)
        except Unreadable as error:
            self._lose(hold, f"status 200, but {error}")
            return None
        if reply.usage is None:
            self._lose(hold, "the answer does not say what it used")
            return Called(reply, None)
        charge = self._prices.charge(self.settings.model, reply.usage, provider=self.settings.provider)
        evidence = {"usage": reply.usage.model_dump(mode="json"), "model": self.settings.model}
        self._ledger.settle(hold, charge, evidence=evidence)
        return Called(reply, charge)

    def _refused(self, answer: Answer, hold: Hold, turn: int) -> tuple[str, float]:
        """What is wrong and how long to wait, where another try may help; else raises."""
        fault = f"status {answer.status}{': ' + answer.message if answer.message else ''}"
        kind = classify(answer.status, answer.code)
        if kind is Class.PERHAPS:
            self._lose(hold, fault)
            return fault, self._backoff(turn)
        self._ledger.release(hold, why=fault)
        if kind is Class.TURNED_AWAY:
            wait = retry_after(answer.headers)
            if wait is not None and wait > LONGEST_WAIT_S:
                raise Unavailable(f"the endpoint asks for a pause of {wait:.0f} s", hint="go on with it then")
            return fault, max(self._backoff(turn), wait or 0.0)
        if answer.status == 400 and self._other_cap(answer):
            return fault, 0.0
        if answer.status in (401, 403):
            whose = f"the key of {self._key.source}" if self._key else "a call without a key"
            raise BadInput(f"the endpoint does not accept {whose}: {fault}")
        raise BadInput(f"the endpoint refuses the call: {fault}", hint="look at --model, --endpoint and --dialect")

    def _other_cap(self, answer: Answer) -> bool:
        """Whether the endpoint wants the cap under its newer name, which is used from now on."""
        newer = "max_completion_tokens"
        if not isinstance(self._dialect, OpenAI) or self._dialect.cap == newer or newer not in answer.message:
            return False
        self._dialect = OpenAI(newer)
        return True

    def _lose(self, hold: Hold, why: str) -> None:
        self.uncertain += 1
        self._ledger.mark_uncertain(hold, why)

    def _backoff(self, turn: int) -> float:
        return backoff(turn, self._random)
