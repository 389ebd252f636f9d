"""One request of an agent: reserved, sent, tried again by class, passed back as it comes, settled.

It runs apart from the agent's connection, so that an agent which goes away leaves no charge undecided: what is under
way is read to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import httpx

from smith.errors import BudgetRefused, LedgerConflict, SmithError, Unavailable
from smith.gateway.asked import Asked
from smith.gateway.dialects import CHAT, StreamReader, error_body, usage_alone
from smith.gateway.paying import Paid
from smith.gateway.rates import Slot
from smith.gateway.session import Session
from smith.gateway.streams import chunks, in_thread, json_of, whole_events
from smith.gateway.upstream import Broken, NotSent, Upstream
from smith.models.faults import code_of, message_of
from smith.models.retry import LONGEST_WAIT_S, SENDS, Class, backoff, classify, retry_after

LARGEST_ANSWER = 64 * 1024 * 1024
"""Bytes."""
SHOWN_HEADERS = ("content-type", "request-id", "x-request-id", "retry-after")
T = TypeVar("T")
FINAL = {"x-should-retry": "false"}
"""Clients of both makers take it as: do not try again."""


@dataclass
class Answer:
    """What the agent gets: a status, and its body in parts as they come; None ends it, an exception breaks it."""

    status: int
    headers: Mapping[str, str]
    parts: asyncio.Queue[bytes | Exception | None] = field(default_factory=asyncio.Queue)
    ended: bool = False

    def end(self, fault: Exception | None = None) -> None:
        """No more comes; what comes first stands."""
        if not self.ended:
            self.ended = True
            self.parts.put_nowait(fault)


class Exchange:
    """One request under way. ``head`` is done when the agent can be answered."""

    def __init__(self, session: Session, upstream: Upstream, asked: Asked, number: int, mark: str) -> None:
        self.head: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.gone = False
        """Whether the agent has left: then nothing is sent again."""
        self._session, self._upstream, self._asked = session, upstream, asked
        self._number, self._mark = number, mark
        self._began = time.monotonic()
        self._first: float | None = None
        self._tries: list[dict[str, Any]] = []
        self._said = bytearray()
        self._answer: Answer | None = None

    async def run(self, headers: Mapping[str, str], query: str) -> None:
        """Do it all; whatever happens the agent has an answer and the ledger an end of every hold."""
        outcome = "interrupted"
        try:
            outcome = await self._tried(headers, query)
        except BudgetRefused as error:
            outcome = "budget"
            self._session.count(refused=1)
            self._session.end("budget", str(error))
            self._fault(402, "budget", f"The budget of this attempt is used up: {error.message}", final=True)
        except SmithError as error:
            outcome = "provider"
            self._session.count(faults=1)
            self._fault(503, "unavailable", self._session.redactor.text(str(error)))
        except Exception:
            outcome = "defect"
            self._session.count(faults=1)
            self._tries.append({"defect": traceback.format_exc()})
        finally:
            if not self.head.done():
                self._fault(503, "unavailable", "the gateway was closed")
            if self._answer is not None:
                self._answer.end(Broken("the gateway broke off"))  # else whoever reads it would wait for ever
            self._record(outcome)

    async def _tried(self, headers: Mapping[str, str], query: str) -> str:
        fault, waited, status = "", 0.0, 502
        for turn in range(SENDS):
            if turn:
                await asyncio.sleep(waited)
                if self.gone:
                    return "abandoned"
            key = f"{self._session.payer.scope}/call-{self._mark}-{self._number}.{turn}"
            session = self._session
            reserve = partial(session.payer.reserve, self._asked, session.most_output, key, session.cap_key)
            paid = await in_thread(
                session.waiting, reserve, lost=partial(session.payer.release, why="interrupted before it was sent")
            )
            slot = await self._slot(paid)
            try:
                again = await self._once(paid, headers, query, turn)
            finally:
                slot.free()
            if isinstance(again, str):
                return again
            fault, waited, status = again
        self._session.count(faults=1)
        self._fault(status, "unavailable", f"the endpoint gives no answer: {fault}")
        return "provider"

    async def _slot(self, paid: Paid) -> Slot:
        """A place in the provider's rates; the hold is kept meanwhile, so that what waits is surely paid."""
        rates, deadline = self._session.rates, time.time() + self._upstream.endpoint.timeout_s
        if rates.free:
            return Slot(None)
        try:
            slot = await in_thread(self._session.waiting, partial(rates.enter, deadline), lost=_free)
        except BaseException:
            self._session.payer.release(paid, "interrupted before it was sent")
            raise
        if slot is None:
            self._session.payer.release(paid, "no place in the provider's rates came free in time")
            raise Unavailable("the provider's rates leave no room for this call")
        return slot

    async def _once(
        self, paid: Paid, headers: Mapping[str, str], query: str, turn: int
    ) -> str | tuple[str, float, int]:
        """One sending: how the exchange ended, or what is wrong, how long to wait and what status that would be."""
        session, began = self._session, time.monotonic()
        session.count(sent=1)
        told: dict[str, Any] = {"hold": paid.hold.key, "cap": paid.cap, "ceiling": paid.hold.ceiling.usd_micros}
        self._tries.append(told)
        try:
            response = await self._upstream.send(self._asked.dialect, paid.sent, headers, query)
        except NotSent as error:
            session.payer.release(paid, str(error))
            told["fault"] = str(error)
            return str(error), backoff(turn, session.random), 502
        except Broken as error:
            self._lose(paid, str(error), told)
            return str(error), backoff(turn, session.random), 504
        except BaseException:
            self._lose(paid, "interrupted before the answer came", told)
            raise
        told["status"] = response.status_code
        try:
            if response.status_code == 200:
                return await self._answered(response, paid, told, began, turn)
            return await self._declined(response, paid, told, turn)
        except BaseException:
            # Settled or not: a hold that is still open now has no other end.
            self._lose_if_open(paid, told)
            raise
        finally:
            await response.aclose()

    async def _answered(
        self, response: httpx.Response, paid: Paid, told: dict[str, Any], began: float, turn: int
    ) -> str | tuple[str, float, int]:
        streamed = response.headers.get("content-type", "").startswith("text/event-stream")
        reader = StreamReader(self._asked.dialect)
        answer = Answer(200, self._shown(response))
        self._said.clear()  # of a try before, that broke off
        try:
            if streamed:
                await self._relay(response, reader, answer, began)
                usage = reader.usage
            else:
                await self._whole(response, began)
                data = json_of(bytes(self._said))
                usage = self._asked.dialect.usage(data.get("usage")) if isinstance(data, dict) else None
        except Broken as error:
            self._lose(paid, str(error), told)
            if not self.head.done():
                return str(error), backoff(turn, self._session.random), 502
            answer.end(error)
            return "broken"
        if usage is None:
            self._lose(paid, "the answer does not say what it used", told)
        else:
            await self._settle(paid, usage, began, told)
        if not streamed:
            self._give(answer)
            answer.parts.put_nowait(self._session.redactor.data(bytes(self._said)))
        elif not self.head.done():
            self._give(answer)
        answer.end()
        return "answered"

    async def _settle(self, paid: Paid, usage: Any, began: float, told: dict[str, Any]) -> None:
        evidence = {"model": self._session.model, "exchange": self._number}
        seconds = time.monotonic() - began
        settle = partial(self._session.payer.settle, self._asked, paid, usage, seconds, evidence)
        charge = await in_thread(self._session.deciding, settle)
        self._session.used(usage)
        told["usage"] = usage.model_dump(mode="json", exclude_defaults=True)
        told["charge"] = charge.usd_micros

    async def _relay(self, response: httpx.Response, reader: StreamReader, answer: Answer, began: float) -> None:
        """Pass events on as they come, whole ones only: a part of one could hold a part of a secret."""
        quiet = self._asked.dialect is CHAT and not self._asked.wants_usage
        pending = b""
        async for chunk in chunks(response, self._upstream.endpoint.timeout_s, began):
            self._said += chunk
            pending += chunk
            whole, pending = whole_events(pending)
            out = []
            for event in whole:
                said = reader.event(event)
                if not (quiet and usage_alone(said)):
                    out.append(event)
            if out:
                if self._first is None:
                    self._first = time.monotonic() - self._began
                    self._give(answer)
                answer.parts.put_nowait(self._session.redactor.data(b"".join(out)))
            if len(self._said) > LARGEST_ANSWER:
                raise Broken(f"an answer of more than {LARGEST_ANSWER} bytes")
        if pending:
            reader.event(pending)
            answer.parts.put_nowait(self._session.redactor.data(pending))
        if not reader.ended:
            raise Broken("the stream ended in the middle")

    async def _whole(self, response: httpx.Response, began: float) -> None:
        async for chunk in chunks(response, self._upstream.endpoint.timeout_s, began):
            self._said += chunk
            if len(self._said) > LARGEST_ANSWER:
                raise Broken(f"an answer of more than {LARGEST_ANSWER} bytes")

    async def _declined(
        self, response: httpx.Response, paid: Paid, told: dict[str, Any], turn: int
    ) -> str | tuple[str, float, int]:
        session = self._session
        try:
            body = b"".join([chunk async for chunk in chunks(response, 60.0, time.monotonic())])[:100_000]
        except Broken:
            body = b""
        data, status = json_of(body), response.status_code
        message = session.redactor.text(message_of(data))
        fault = told["fault"] = f"status {status}{': ' + message if message else ''}"
        kind = classify(status, code_of(data))
        if kind is Class.PERHAPS:
            self._lose(paid, fault, told)
            return fault, backoff(turn, session.random), status if status in (500, 502, 504) else 502
        session.payer.release(paid, fault)
        if kind is Class.TURNED_AWAY:
            wait = retry_after(dict(response.headers)) or 0.0
            if wait > LONGEST_WAIT_S:
                raise Unavailable(f"the endpoint asks for a pause of {wait:.0f} s")
            if wait:
                session.rates.pause(wait)
            return fault, max(backoff(turn, session.random), wait), status
        if status == 400 and self._other_cap(message):
            return fault, 0.0, status
        return self._final(status, fault, body, response)

    def _final(self, status: int, fault: str, body: bytes, response: httpx.Response) -> str:
        """What no patience mends: the agent's own fault is passed back, that of key, model or account ends it all."""
        if status in (401, 402, 403, 404, 429):
            self._session.count(faults=1)
            self._session.end("provider", f"the endpoint refuses the call: {fault}")
            self._fault(403, "refused", f"the endpoint refuses this gateway: {fault}", final=True)
            return "provider"
        answer = Answer(status, {**self._shown(response), **FINAL})
        self._said += body
        self._give(answer)
        answer.parts.put_nowait(self._session.redactor.data(body))
        answer.end()
        return "declined"

    def _other_cap(self, message: str) -> bool:
        """Whether the endpoint wants the cap under its other name, which is used from now on."""
        if self._asked.dialect is not CHAT or self._session.cap_key is not None:
            return False
        # Servers may ignore a name that they do not know, and the cap with it: the older one is tried first.
        older, newer = CHAT.caps
        used = [key for key in CHAT.caps if key in self._asked.body] or [older]
        if newer not in message:
            return False
        self._session.cap_key = older if newer in used else newer
        return True

    def _lose(self, paid: Paid, why: str, told: dict[str, Any]) -> None:
        self._session.count(uncertain=1)
        told["uncertain"] = why
        self._session.payer.lose(paid, why)

    def _lose_if_open(self, paid: Paid, told: dict[str, Any]) -> None:
        if not {"uncertain", "charge", "fault"} & set(told):
            with contextlib.suppress(LedgerConflict):  # it was settled in the very moment of the interruption
                self._lose(paid, "interrupted before the answer was whole", told)

    def _shown(self, response: httpx.Response) -> dict[str, str]:
        hide = self._session.redactor.text
        return {name: hide(response.headers[name]) for name in SHOWN_HEADERS if name in response.headers}

    def _give(self, answer: Answer) -> None:
        if not self.head.done():
            self._answer = answer
            self.head.set_result(answer)

    def _fault(self, status: int, kind: str, message: str, *, final: bool = False) -> None:
        answer = Answer(status, {"content-type": "application/json", **(FINAL if final else {})})
        answer.parts.put_nowait(json.dumps(error_body(self._asked.dialect, kind, message)).encode())
        answer.end()
        self._said += message.encode()
        self._give(answer)

    def _record(self, outcome: str) -> None:
        session, asked = self._session, self._asked
        session.recorder.write(
            {
                "n": self._number,
                "at": round(time.time() - (time.monotonic() - self._began), 3),
                "dialect": asked.dialect.name,
                "stream": asked.stream,
                "outcome": outcome,
                "seconds": round(time.monotonic() - self._began, 4),
                "first_s": None if self._first is None else round(self._first, 4),
                "tries": self._tries,
                **({"dropped_tools": asked.dropped} if asked.dropped else {}),
                "request": session.recorder.request(self._number, asked.body, asked.dialect.turns),
                "answer": self._said.decode("utf-8", "replace"),
            }
        )


def _free(slot: Slot | None) -> None:
    if slot is not None:
        slot.free()
