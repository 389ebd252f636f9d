"""A gateway in front of a scripted model, with a ledger of its own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import httpx

from smith.gateway.paying import Payer
from smith.gateway.rates import Rates
from smith.gateway.record import Recorder, Redactor
from smith.gateway.server import Gateway
from smith.gateway.session import Session
from smith.gateway.upstream import Endpoint
from smith.ledger import Ledger, Limits, State
from smith.ledger.prices import Prices
from smith.records.gateway import RateRow
from smith.records.prices import PriceRow
from smith.secret import Token
from tests.gateway.scripted_model import Model, Script, serving

NO_BOUNDS = RateRow()
KEY = "sk-upstream-canary-0123456789"
TOKEN = "smith-attempt-token-9876543210"
SCOPE = "eval/run/task/attempt-001"
MODEL = "scripted"
PRICES = Prices({MODEL: PriceRow(input_mtok=Decimal(1), output_mtok=Decimal(4), cache_read_mtok=Decimal("0.5"))})
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


class Quick(Random):
    """No pause worth waiting for."""

    def random(self) -> float:
        return -0.499


@dataclass
class World:
    ledger: Ledger
    model: Model
    gateway: Gateway
    http: httpx.Client
    evidence: Path

    @property
    def states(self) -> list[State]:
        return [hold.state for hold in self.ledger.holds()]

    @property
    def spent(self) -> int:
        return self.ledger.balance(SCOPE).spent.usd_micros

    @property
    def held(self) -> int:
        return self.ledger.balance(SCOPE).held.usd_micros

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.evidence.read_bytes().splitlines()]

    def ask(self, dialect: str = "chat", **more: Any) -> httpx.Response:
        return self.http.post(PATHS[dialect], json=request(dialect, **more))

    def stream(self, dialect: str = "chat", **more: Any) -> contextlib.AbstractContextManager[httpx.Response]:
        return self.http.stream("POST", PATHS[dialect], json=request(dialect, stream=True, **more))


def request(dialect: str, text: str = "What is wrong?", **more: Any) -> dict[str, Any]:
    turns = [{"role": "user", "content": text}]
    cap = {"chat": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}[dialect]
    key = "input" if dialect == "responses" else "messages"
    return {"model": MODEL, key: turns, cap: 1000, **more}


@contextlib.contextmanager
def gateway_at(
    folder: Path,
    model: Model,
    ledger: Ledger,
    *,
    family: str = "openai",
    scope: str = SCOPE,
    prices: Prices = PRICES,
    timeout_s: float = 20.0,
    patience_s: float = 5.0,
    rates: RateRow = NO_BOUNDS,
    url: str | None = None,
    payer: type[Payer] = Payer,
) -> Iterator[Gateway]:
    folder.mkdir(parents=True, exist_ok=True)
    base = model.url + ("" if family == "anthropic" else "/v1")
    token, key = Token.parse(TOKEN, "the attempt"), Token.parse(KEY, "OPENAI_API_KEY")
    redactor = Redactor([token, key])
    session = Session(
        token=token,
        endpoint=Endpoint(url or base, family, key, timeout_s),
        payer=payer(ledger, prices, scope, MODEL, None, max_device_ms=int(timeout_s * 1000), patience_s=patience_s),
        recorder=Recorder(folder / "exchanges.jsonl", redactor),
        redactor=redactor,
        rates=Rates(folder.parent / "rates", "scripted", rates),
        random=Quick(),
    )
    with Gateway.open(session, folder / "gateway.sock") as gateway:
        yield gateway


def client(gateway: Gateway, token: str = TOKEN) -> httpx.Client:
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=gateway.address),
        base_url="http://gateway",
        headers={"authorization": f"Bearer {token}"},
        timeout=30,
    )


@contextlib.contextmanager
def world(
    tmp_path: Path, script: Script, *, budget: int = 1_000_000, family: str = "openai", **more: Any
) -> Iterator[World]:
    with serving(script) as model, Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.set_limit("eval/run", Limits(usd_micros=budget), who="test", why="test")
        with gateway_at(tmp_path / "attempt", model, ledger, family=family, **more) as gateway, client(gateway) as http:
            yield World(ledger, model, gateway, http, tmp_path / "attempt" / "exchanges.jsonl")
        assert not ledger.holds(states=[State.OPEN])
        assert ledger.check() == []
