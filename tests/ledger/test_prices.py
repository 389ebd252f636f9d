"""Prices: a ceiling is never below a charge, an unknown price is never zero, and what genai-prices says counts."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import genai_prices
import pytest
from genai_prices.data import providers
from genai_prices.data_snapshot import DataSnapshot
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    Provider,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)
from hypothesis import given
from hypothesis import strategies as st

from smith.errors import BadInput, RecordError, UnknownPrice
from smith.ledger.amounts import Amounts, dollars, micros
from smith.ledger.catalogue import Catalogue
from smith.ledger.prices import Prices, Usage
from smith.paths import Layout
from smith.records.prices import PriceRow

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
# Priced by parts that a usage of ours does not tell apart, so that ours is dearer; see the catalogue.
_DEARER = {"output_reasoning_mtok", "output_text_mtok"}


def invented(prices: ModelPrice | list[ConditionalPrice]) -> Catalogue:
    """A catalogue of one model, ``acme/one``."""
    model = ModelInfo(id="one", match=ClauseEquals("one"), prices=prices)
    acme = Provider(id="acme", name="Acme", api_pattern="https://acme", models=[model])
    return Catalogue(DataSnapshot(providers=[acme], from_auto_update=False))


def price(input_mtok: str, output_mtok: str) -> ModelPrice:
    return ModelPrice(input_mtok=Decimal(input_mtok), output_mtok=Decimal(output_mtok))


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    total = draw(st.integers(0, 2_000_000))
    cached = draw(st.integers(0, total))
    written = draw(st.integers(0, total - cached))
    return Usage(
        input_tokens=total,
        output_tokens=draw(st.integers(0, 200_000)),
        cached_tokens=cached,
        cache_write_tokens=written,
        cache_write_1h_tokens=draw(st.integers(0, written)),
    )


MODELS = [
    (provider.id, model.id)
    for provider in providers
    for model in provider.models
    if Catalogue().tariffs(model.id, provider.id, since=NOON, until=NOON)
]


def test_most_models_that_talk_have_a_price() -> None:
    assert len(MODELS) > 1500


@given(usage=usages(), which=st.sampled_from(MODELS), hours=st.integers(0, 23))
def test_a_ceiling_is_above_every_charge_below_it(usage: Usage, which: tuple[str, str], hours: int) -> None:
    provider, model = which
    ceiling = Prices(clock=lambda: NOON).ceiling(
        model, input_tokens=usage.input_tokens, max_output_tokens=usage.output_tokens, provider=provider
    )
    later = Prices(clock=lambda: NOON + timedelta(hours=hours))
    charged = later.charge(model, usage, provider=provider)
    assert charged.beyond(ceiling) == ()
    if usage.output_tokens:
        assert charged.usd_micros > 0


@given(usage=usages(), which=st.sampled_from(MODELS))
def test_a_charge_is_what_genai_prices_calculates_rounded_up(usage: Usage, which: tuple[str, str]) -> None:
    provider, model = which
    said = genai_prices.calc_price(
        genai_prices.Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cache_write_1h_tokens=usage.cache_write_1h_tokens,
        ),
        model,
        provider_id=provider,
        genai_request_timestamp=NOON,
    )
    right = int((said.total_price * 1_000_000).to_integral_value(ROUND_CEILING))
    ours = Prices(clock=lambda: NOON).charge(model, usage, provider=provider).usd_micros
    keys = {key for key, value in said.model_price.__dict__.items() if value is not None}
    assert ours == right if not keys & _DEARER else ours >= right


@pytest.mark.parametrize(("model", "provider"), [("no-such-model", None), ("gpt-5", "nobody"), ("", None), ("/", None)])
def test_an_unknown_price_refuses(model: str, provider: str | None) -> None:
    prices = Prices()
    for ask in (
        lambda: prices.ceiling(model, input_tokens=1, max_output_tokens=1, provider=provider),
        lambda: prices.charge(model, Usage(), provider=provider),
        lambda: prices.source(model, provider=provider),
    ):
        with pytest.raises(UnknownPrice, match=r"nobody knows.*smith.toml") as refused:
            ask()
        assert refused.value.exit_code == 4


@pytest.mark.parametrize(
    "prices",
    [
        ModelPrice(),
        ModelPrice(input_mtok=Decimal(1)),
        price("0", "0"),
        price("1", "0"),
        [
            ConditionalPrice(None, prices=price("1", "1")),
            ConditionalPrice(TimeOfDateConstraint(time(18), time(20)), prices=ModelPrice()),
        ],
    ],
)
def test_what_the_data_leaves_out_is_unknown_not_free(prices: ModelPrice | list[ConditionalPrice]) -> None:
    with pytest.raises(UnknownPrice):
        Prices(catalogue=invented(prices), clock=lambda: NOON).ceiling(
            "one", input_tokens=1, max_output_tokens=1, provider="acme"
        )


def test_a_step_of_a_price_is_met_in_the_ceiling() -> None:
    steps = ModelPrice(
        input_mtok=TieredPrices(base=Decimal(2), tiers=[Tier(start=1000, price=Decimal(4))]),
        output_mtok=Decimal(10),
    )
    prices = Prices(catalogue=invented(steps), clock=lambda: NOON)

    def ceiling(tokens: int) -> int:
        return prices.ceiling("one", input_tokens=tokens, max_output_tokens=0, provider="acme").usd_micros

    assert (ceiling(1000), ceiling(1001)) == (2000, 4004)
    assert prices.charge("one", Usage(input_tokens=1001), provider="acme").usd_micros == 4004


def test_a_ceiling_holds_through_a_change_of_price() -> None:
    changing = [
        ConditionalPrice(None, prices=price("1", "1")),
        ConditionalPrice(TimeOfDateConstraint(time(18, tzinfo=UTC), time(20, tzinfo=UTC)), prices=price("3", "1")),
        ConditionalPrice(StartDateConstraint(date(2026, 12, 1)), prices=price("5", "1")),
        ConditionalPrice(StartDateConstraint(date(2026, 12, 2)), prices=price("70", "1")),
    ]

    def at(moment: datetime) -> tuple[int, int]:
        prices = Prices(catalogue=invented(changing), clock=lambda: moment)
        ceiling = prices.ceiling("one", input_tokens=10**6, max_output_tokens=0, provider="acme")
        return ceiling.usd_micros, prices.charge("one", Usage(input_tokens=10**6), provider="acme").usd_micros

    assert at(datetime(2026, 11, 28, 21, tzinfo=UTC)) == (3_000_000, 1_000_000)  # 18 to 20 o'clock of the next day
    assert at(datetime(2026, 11, 30, 11, tzinfo=UTC)) == (5_000_000, 1_000_000)  # 1 December begins in 13 hours
    assert at(datetime(2026, 11, 30, 19, tzinfo=UTC)) == (5_000_000, 3_000_000)
    assert at(datetime(2026, 12, 1, 1, tzinfo=UTC)) == (70_000_000, 5_000_000)


def test_the_provider_may_stand_before_the_model() -> None:
    prices = Prices()
    assert prices.source("openai/gpt-5").endswith(": openai/gpt-5")
    assert prices.source("gpt-5", provider="openai") == prices.source("openai/gpt-5")
    assert prices.source("gpt-5").startswith(f"genai-prices {genai_prices.__version__}: ")


def stating(tmp_path: Path, text: str) -> Prices:
    (tmp_path / "smith.toml").write_text(f"schema_version = 1\n{text}\n")
    return Prices.of(Layout(tmp_path))


def test_smith_toml_comes_first_and_is_believed(tmp_path: Path) -> None:
    prices = stating(
        tmp_path,
        """
        [prices."openai/gpt-5"]
        input_mtok = 0.1
        output_mtok = "0.7"
        cache_read_mtok = 0
        request = "0.0000001"
        [prices."local/free"]
        input_mtok = 0
        output_mtok = 0
        """,
    )
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000, cached_tokens=400_000)
    expected = Amounts(usd_micros=760_001, input_tokens=10**6, output_tokens=10**6, cached_tokens=400_000)
    assert prices.charge("gpt-5", usage, provider="openai") == expected
    assert prices.charge("openai/gpt-5", usage) == expected
    assert prices.ceiling("openai/gpt-5", input_tokens=10**6, max_output_tokens=10**6).usd_micros == 800_001
    assert prices.source("openai/gpt-5") == 'smith.toml: prices."openai/gpt-5"'
    assert prices.charge("local/free", usage).usd_micros == 0
    with pytest.raises(UnknownPrice):  # exactly that name
        prices.charge("local/free2", usage)


def test_a_local_model_may_be_charged_by_device_time(tmp_path: Path) -> None:
    prices = stating(tmp_path, '[prices."local/qwen"]\ndevice_hour = 3.60\n')
    with pytest.raises(BadInput, match="charged by device time"):
        prices.ceiling("qwen", input_tokens=10, max_output_tokens=10, provider="local")
    ceiling = prices.ceiling("qwen", input_tokens=10, max_output_tokens=10, max_device_ms=2500, provider="local")
    assert (ceiling.usd_micros, ceiling.device_ms) == (2500, 2500)
    charged = prices.charge("qwen", Usage(input_tokens=10, output_tokens=9, device_ms=1), provider="local")
    assert (charged.usd_micros, charged.device_ms, charged.output_tokens) == (1, 1, 9)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("input_mtok = 1", "both input_mtok and output_mtok"),
        ("request = 1", "needs input_mtok and output_mtok, or device_hour"),
        ("input_mtok = -1\noutput_mtok = 1", "input_mtok"),
        ("input_mtok = nan\noutput_mtok = 1", "input_mtok"),
        ("input_mtok = 1\noutput_mtok = inf", "output_mtok"),
        ("input = 1\noutput_mtok = 1", "no known key"),
    ],
)
def test_a_price_that_is_none_is_refused(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        stating(tmp_path, f'[prices."a/b"]\n{row}\n')


def test_floats_of_toml_are_taken_as_written() -> None:
    row = PriceRow.model_validate({"input_mtok": 0.1, "output_mtok": 0.3})
    assert (row.input_mtok, row.output_mtok) == (Decimal("0.1"), Decimal("0.3"))


def test_cached_tokens_are_part_of_the_input() -> None:
    with pytest.raises(ValueError, match="counts all of the prompt"):
        Usage(input_tokens=10, cached_tokens=6, cache_write_tokens=5)


@given(st.decimals(min_value=0, max_value=10**6, allow_nan=False, allow_infinity=False))
def test_money_is_rounded_up_when_charged_and_down_when_allowed(usd: Decimal) -> None:
    low, high = micros(usd, up=False), micros(usd, up=True)
    assert low <= usd * 10**6 <= high
    assert high - low <= 1


@pytest.mark.parametrize(
    ("micro", "text"),
    [(0, "$0.00"), (1, "$0.000001"), (1_500_000, "$1.50"), (123_456_789_012, "$123,456.789012"), (-70, "-$0.00007")],
)
def test_dollars_for_people(micro: int, text: str) -> None:
    assert dollars(micro) == text
