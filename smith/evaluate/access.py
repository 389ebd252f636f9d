"""How a run reaches its model: endpoint, key, prices and rates, checked before anything is written."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from smith.errors import BadInput
from smith.gateway.dialects import FAMILIES, Dialect
from smith.gateway.paying import Payer
from smith.gateway.rates import Rates
from smith.gateway.record import Recorder, Redactor
from smith.gateway.server import Gateway
from smith.gateway.session import DEFAULT_OUTPUT, Session, exchanges_file
from smith.gateway.upstream import Endpoint
from smith.ledger import Ledger
from smith.ledger.prices import Prices
from smith.models.address import checked_url
from smith.models.keys import find_key
from smith.paths import Layout
from smith.records.config import Config
from smith.records.gateway import RateRow
from smith.records.prices import PriceRow
from smith.secret import Token

CALL_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class ModelAccess:
    """One model as the attempts of a run reach it."""

    model: str
    provider: str | None
    endpoint: Endpoint
    prices: Prices
    price_source: str
    rates: Path
    rate: RateRow
    most_output: int
    environ: Mapping[str, str]
    replayed: Path | None = None
    """The folder of the attempts of an earlier run, whose answers are given again."""

    @contextlib.contextmanager
    def open(self, ledger: Ledger, scope: str, evidence: Path, place: Path) -> Iterator[Gateway]:
        """A gateway for one attempt, paid from ``scope``; its socket lies in ``place``, its record in ``evidence``."""
        token = Token.parse(f"smith-{secrets.token_hex(24)}", "the attempt")
        redactor = Redactor.of([token, self.endpoint.key], self.environ)
        payer = Payer(
            ledger,
            self.prices,
            scope,
            self.model,
            self.provider,
            max_device_ms=int(self.endpoint.timeout_s * 1000),
        )
        endpoint = self.endpoint
        if self.replayed is not None:
            earlier = self.replayed / evidence.parent.name / evidence.name
            endpoint = replace(endpoint, record=exchanges_file(earlier))
        session = Session(
            token=token,
            endpoint=endpoint,
            payer=payer,
            recorder=Recorder(exchanges_file(evidence), redactor),
            redactor=redactor,
            rates=Rates(self.rates, self.provider or self.endpoint.host, self.rate),
            most_output=self.most_output,
        )
        with Gateway.open(session, place / "gateway.sock") as gateway:
            yield gateway


def access_of(
    layout: Layout,
    model: str | None,
    options: Mapping[str, str],
    dialect: Dialect,
    environ: Mapping[str, str] = os.environ,
) -> ModelAccess:
    """How an agent with these options reaches its model.

    Raises :class:`BadInput` where no model is named or its endpoint cannot be used,
    :class:`smith.errors.UnknownPrice` where nobody knows what a call costs.
    """
    if model is None:
        raise BadInput("this agent asks a model, and none is named", hint="--model M")
    if "replay" in options:
        return _replaying(layout, model, options, dialect, environ)
    default, url_variable, key_variable = FAMILIES[dialect.family]
    key_file = options.get("key_file")
    provider = options.get("provider")
    settings = Config.load(layout.config)
    prices = Prices(settings.prices)
    endpoint = Endpoint(
        url=checked_url(options.get("endpoint") or environ.get(url_variable) or default),
        family=dialect.family,
        key=find_key(Path(key_file) if key_file else None, key_variable, environ),
        timeout_s=float(options.get("call_timeout_s", CALL_TIMEOUT_S)),
    )
    return ModelAccess(
        model=model,
        provider=provider,
        endpoint=endpoint,
        prices=prices,
        price_source=prices.source(model, provider=provider),
        rates=layout.rates,
        rate=settings.rates.get(provider or endpoint.host, RateRow()),
        most_output=int(options.get("max_output_tokens", DEFAULT_OUTPUT)),
        environ=environ,
    )


def _replaying(
    layout: Layout, model: str, options: Mapping[str, str], dialect: Dialect, environ: Mapping[str, str]
) -> ModelAccess:
    """Access to the answers of an earlier run: no key, no address that is ever called, and no price."""
    free = PriceRow(input_mtok=Decimal(0), output_mtok=Decimal(0))
    return ModelAccess(
        model=model,
        provider=None,
        endpoint=Endpoint(url=FAMILIES[dialect.family][0], family=dialect.family, key=None),
        prices=Prices({model: free}),
        price_source="none: answers of an earlier run are given again",
        rates=layout.rates,
        rate=RateRow(),
        most_output=int(options.get("max_output_tokens", DEFAULT_OUTPUT)),
        environ=environ,
        replayed=layout.attempts(options["replay"]),
    )
