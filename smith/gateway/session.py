"""One attempt's side of the gateway: what it may use, what its calls came to, and whether it is over."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from smith.gateway.paying import Payer
from smith.gateway.rates import Rates
from smith.gateway.record import Recorder, Redactor
from smith.gateway.upstream import Endpoint
from smith.ledger.tariff import Usage
from smith.secret import Token

DEFAULT_OUTPUT = 32_000
"""Tokens of a reply where the request sets no cap, and the most that is allowed."""


WAITING = 64
"""Calls of one attempt that may wait at once; more than these wait for one of them."""


@dataclass
class Totals:
    """What the calls of one attempt came to."""

    calls: int = 0
    """Requests of the agent."""
    sent: int = 0
    """Requests to the endpoint, those that were sent again among them."""
    uncertain: int = 0
    """Sent requests of which nobody knows what they cost."""
    refused: int = 0
    """Requests for which the budget was too small."""
    faults: int = 0
    """Requests that the endpoint did not answer."""
    usage: Usage = field(default_factory=Usage)


@dataclass
class Session:
    """Everything that the calls of one attempt share. ``token`` opens its gateway and nothing else."""

    token: Token
    endpoint: Endpoint
    payer: Payer
    recorder: Recorder
    redactor: Redactor
    rates: Rates
    most_output: int = DEFAULT_OUTPUT
    random: Random = field(default_factory=Random)
    totals: Totals = field(default_factory=Totals)
    over: threading.Event = field(default_factory=threading.Event)
    """Set when no further call can succeed: the budget is out, or the endpoint refuses key or model."""
    why: str = ""
    """``budget`` or ``provider``, once it is over."""
    detail: str = ""
    cap_key: str | None = None
    """The name of the cap that the endpoint turned out to know."""
    waiting: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(WAITING, "smith-gateway-waits"))
    """For what may wait for others' money, or for a place in the rates."""
    deciding: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "smith-gateway-settles"))
    """For settlements: were these to wait behind those who wait for them, nothing would go on."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def model(self) -> str:
        return self.payer.model

    def count(self, **more: int) -> Totals:
        """Add to the totals; gives a copy of them as they then are."""
        with self._lock:
            for name, number in more.items():
                setattr(self.totals, name, getattr(self.totals, name) + number)
            return Totals(**vars(self.totals))

    def used(self, usage: Usage) -> None:
        """Add the usage of one call."""
        with self._lock:
            before = self.totals.usage.model_dump()
            self.totals.usage = Usage(**{name: before[name] + more for name, more in usage.model_dump().items()})

    def end(self, why: str, detail: str) -> None:
        """No further call can succeed; the first reason stands."""
        with self._lock:
            if not self.over.is_set():
                self.why, self.detail = why, self.redactor.text(detail)
                self.over.set()

    def close(self) -> None:
        """No call is under way any more."""
        self.waiting.shutdown(wait=False)
        self.deciding.shutdown(wait=False)
        self.recorder.close()


def exchanges_file(evidence: Path) -> Path:
    """Where the exchanges of an attempt are recorded."""
    return evidence / "exchanges.jsonl"
