"""Tariffs from the data that comes with genai-prices. Nothing is fetched: its updater is never started."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import genai_prices
from genai_prices.data import providers
from genai_prices.data_snapshot import DataSnapshot, find_provider_by_id
from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices, TimeOfDateConstraint

from smith.ledger.tariff import Rate, Tariff, dearest, flat

WINDOW = timedelta(days=1)
"""A call is over, and charged, so long after it was reserved at the latest."""

_OUTPUT = ("output_mtok", "output_text_mtok", "output_reasoning_mtok")
_WRITTEN = ("cache_write_mtok", "cache_write_5m_mtok")


class Catalogue:
    """Look-ups in one snapshot of genai-prices; by default the one that is installed."""

    def __init__(self, snapshot: DataSnapshot | None = None) -> None:
        self._snapshot = snapshot or DataSnapshot(providers=providers, from_auto_update=False)

    def tariffs(self, model: str, provider: str | None, *, since: datetime, until: datetime) -> list[Tariff]:
        """Every tariff that is in force at some time from ``since`` to ``until``; none where the price is not known."""
        found = self._find(model, provider)
        if found is None:
            return []
        prices = [found[1].get_prices(moment) for moment in _changes(found[1], since, until)]
        if any(not _known(price) for price in prices):
            return []
        source = f"genai-prices {genai_prices.__version__}: {found[0].id}/{found[1].id}"
        return [_tariff(source, price) for price in prices]

    def _find(self, model: str, provider: str | None) -> tuple[Provider, ModelInfo] | None:
        tries = [(model, provider)]
        if provider is None:
            head, _, tail = model.partition("/")
            if tail and find_provider_by_id(self._snapshot.providers, head):
                tries.insert(0, (tail, head))
        for name, where in tries:
            try:
                return self._snapshot.find_provider_model(name, None, where, None)
            except LookupError:
                continue
        return None


def _changes(model: ModelInfo, since: datetime, until: datetime) -> Iterator[datetime]:
    """``since``, and every time up to ``until`` at which another price may begin."""
    yield since
    if isinstance(model.prices, ModelPrice):
        return
    days = [since.astimezone(UTC).date() + timedelta(days=n) for n in range((until - since).days + 2)]
    hours = {datetime.min.time()}
    for price in model.prices:
        if isinstance(price.constraint, TimeOfDateConstraint):
            hours |= {price.constraint.start_time, price.constraint.end_time}
    for day in days:
        for hour in hours:
            moment = datetime.combine(day, hour, tzinfo=hour.tzinfo or UTC)
            if since < moment <= until:
                yield moment


def _known(price: ModelPrice) -> bool:
    """Whether tokens both ways have a price above zero: the data leaves out both what is free and what is not known."""
    return all(value is not None and _rate(value)[0][1] > 0 for value in (price.input_mtok, price.output_mtok))


def _tariff(source: str, price: ModelPrice) -> Tariff:
    plain = _of(price, ("input_mtok",))
    assert plain is not None
    output = _of(price, _OUTPUT)
    assert output is not None
    written = _of(price, _WRITTEN) or plain
    requests = price.requests_kcount
    return Tariff(
        source=source,
        input=plain,
        output=output,
        cached=_of(price, ("cache_read_mtok",)) or plain,
        written=written,
        written_1h=_of(price, ("cache_write_1h_mtok",)) or written,
        request=Decimal(0) if requests is None else max(price for _, price in _rate(requests)) / 1000,
    )


def _of(price: ModelPrice, keys: tuple[str, ...]) -> Rate | None:
    values = [getattr(price, key) for key in keys]
    rates = [_rate(value) for value in values if value is not None]
    return dearest(rates) if rates else None


def _rate(value: Decimal | TieredPrices) -> Rate:
    if isinstance(value, TieredPrices):
        return ((-1, value.base), *((tier.start, tier.price) for tier in value.tiers))
    return flat(value)
