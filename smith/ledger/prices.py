"""What a call of a model may cost at most, and what it did cost: from ``smith.toml``, else from genai-prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from smith.errors import BadInput, UnknownPrice
from smith.ledger.amounts import Amounts, micros
from smith.ledger.tariff import Tariff, Usage, stated
from smith.paths import Layout
from smith.records.config import Config
from smith.records.prices import PriceRow

if TYPE_CHECKING:
    from smith.ledger.catalogue import Catalogue

__all__ = ["Prices", "Usage"]


def _now() -> datetime:
    return datetime.now(UTC)


class Prices:
    """Prices by model, and by provider where one name means several. A price that is not known is never zero.

    ``stated`` is the table ``[prices]`` of ``smith.toml``; ``catalogue`` what genai-prices knows, loaded when needed.
    """

    def __init__(
        self,
        stated: Mapping[str, PriceRow] | None = None,
        *,
        catalogue: Catalogue | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._stated = dict(stated or {})
        self._catalogue = catalogue
        self._clock = clock

    @classmethod
    def of(cls, layout: Layout) -> Prices:
        """The prices of a data repository."""
        return cls(Config.load(layout.config).prices)

    def source(self, model: str, *, provider: str | None = None) -> str:
        """Who says what this model costs, for evidence. Raises :class:`UnknownPrice`."""
        return self._tariffs(model, provider, whole_day=False)[0].source

    def by_device_time(self, model: str, *, provider: str | None = None) -> bool:
        """Whether a call is charged by the time of a device. Raises :class:`UnknownPrice`."""
        return any(tariff.device_hour for tariff in self._tariffs(model, provider, whole_day=True))

    def ceiling(
        self,
        model: str,
        *,
        input_tokens: int,
        max_output_tokens: int,
        max_device_ms: int = 0,
        provider: str | None = None,
    ) -> Amounts:
        """The most that one call may cost: however the prompt is cached, and if the tariff changes while it runs.

        Raises :class:`UnknownPrice`, and :class:`BadInput` where device time is charged and has no limit.
        """
        tariffs = self._tariffs(model, provider, whole_day=True)
        if max_device_ms <= 0 and any(tariff.device_hour for tariff in tariffs):
            raise BadInput(f"{model} is charged by device time, which has no limit here", hint="give a time limit")
        usd = max(tariff.most(input_tokens, max_output_tokens, max_device_ms) for tariff in tariffs)
        return Amounts(
            usd_micros=micros(usd, up=True),
            input_tokens=input_tokens,
            output_tokens=max_output_tokens,
            cached_tokens=input_tokens,
            device_ms=max_device_ms,
        )

    def charge(self, model: str, usage: Usage, *, provider: str | None = None) -> Amounts:
        """What one call cost, now that it is over. Raises :class:`UnknownPrice`."""
        usd = self._tariffs(model, provider, whole_day=False)[0].usd(usage)
        return Amounts(
            usd_micros=micros(usd, up=True),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            device_ms=usage.device_ms,
            wall_ms=usage.wall_ms,
        )

    def _tariffs(self, model: str, provider: str | None, *, whole_day: bool) -> list[Tariff]:
        key = model if provider is None else f"{provider}/{model}"
        if key in self._stated:
            return [stated(key, self._stated[key])]
        # Loading its data takes half a second.
        from smith.ledger.catalogue import WINDOW, Catalogue

        self._catalogue = self._catalogue or Catalogue()
        now = self._clock()
        found = self._catalogue.tariffs(model, provider, since=now, until=now + WINDOW if whole_day else now)
        if not found:
            raise UnknownPrice(
                f"nobody knows what a call of {key[:120]} costs",
                hint=f'state it in smith.toml: [prices."{key[:120]}"] input_mtok = .., output_mtok = .. (dollars)',
            )
        return found
