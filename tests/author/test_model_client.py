"""Calls of a model over real HTTP on loopback: what is sent, what it costs, and every way in which it goes wrong."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from smith.author.client import Client, Settings
from smith.author.dialects import Message, dialect_of
from smith.errors import BadInput, BudgetRefused, Unavailable
from smith.ledger import Ledger, Limits, State
from smith.ledger.prices import Prices
from smith.records.prices import PriceRow
from smith.secret import Token
from tests.author.model_endpoint import Asked, Endpoint, Say, Script, in_turn, serving

KEY = "sk-test-0123456789abcdef"
SCOPE = "author/lab__tiny-1"
PRICES = Prices({"scripted": PriceRow(input_mtok=Decimal(1), output_mtok=Decimal(4))})
TURN = [Message("user", "What is wrong?")]


class World:
    def __init__(self, ledger: Ledger, endpoint: Endpoint, client: Client, slept: list[float]) -> None:
        self.ledger, self.endpoint, self.client, self.slept = ledger, endpoint, client, slept

    @property
    def states(self) -> list[State]:
        return [hold.state for hold in self.ledger.holds()]

    @property
    def spent(self) -> int:
        return self.ledger.balance(SCOPE).spent.usd_micros

    @property
    def held(self) -> int:
        return self.ledger.balance(SCOPE).held.usd_micros


@contextlib.contextmanager
def world(
    tmp_path: Path,
    script: Script,
    *,
    dialect: str = "openai",
    budget: int = 1_000_000,
    timeout_s: float = 20.0,
    most: int = 1000,
    key: str | None = KEY,
    nobody: bool = False,
) -> Iterator[World]:
    slept: list[float] = []
    with serving(script) as endpoint, Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.set_limit(SCOPE, Limits(usd_micros=budget), who="test", why="test")
        url = "http://127.0.0.1:9" if nobody else endpoint.url + ("/v1" if dialect == "openai" else "")
        token = Token.parse(key, "OPENAI_API_KEY") if key else None
        settings = Settings("scripted", max_output_tokens=most, timeout_s=timeout_s)
        with Client(
            url,
            token,
            dialect_of("scripted", dialect),
            settings,
            ledger=ledger,
            prices=PRICES,
            scope=SCOPE,
            sleep=slept.append,
            random=Random(1),
        ) as client:
            yield World(ledger, endpoint, client, slept)


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_an_answer_is_reserved_at_its_ceiling_and_settled_at_its_usage(tmp_path: Path, dialect: str) -> None:
    held: list[int] = []
    there: list[World] = []

    def script(asked: Asked) -> Say:
        held.append(there[0].held)
        return Say("Nothing.", output=7)

    with world(tmp_path, script, dialect=dialect) as w:
        there.append(w)
        called = w.client.call("You read.", TURN, name="review-1")
        assert (called.reply.text, called.reply.cut) == ("Nothing.", False)
        usage = called.reply.usage
        assert usage is not None and usage.output_tokens == 7 and usage.cached_tokens == 10
        assert w.spent == usage.input_tokens + 4 * 7
        # While the call was under way, its whole ceiling was held: a token a byte, and the whole cap.
        assert held[0] >= len(b"You read.What is wrong?") + 4 * 1000
        assert w.held == 0
        assert w.states == [State.SETTLED]
        (asked,) = w.endpoint.asked
        assert asked.system == "You read."
        assert asked.turns == ["What is wrong?"]
        assert asked.most == 1000
    if dialect == "openai":
        assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    else:
        assert (asked.path, asked.headers["x-api-key"]) == ("/v1/messages", KEY)
        assert asked.headers["anthropic-version"]


@pytest.mark.parametrize("status", [429, 503, 529])
def test_what_was_turned_away_costs_nothing_and_is_tried_again(tmp_path: Path, status: int) -> None:
    script = in_turn(Say("busy", status=status, headers={"Retry-After": "7"}), Say("busy", status=status), Say("Yes."))
    with world(tmp_path, script) as w:
        assert w.client.call("s", TURN, name="a").reply.text == "Yes."
        assert w.states == [State.RELEASED, State.RELEASED, State.SETTLED]
        assert w.slept[0] >= 7.0
        assert 2.0 <= w.slept[1] <= 6.0
        assert w.held == 0


FAULTS = {
    "500": Say("oops", status=500),
    "502": Say("oops", status=502),
    "broken": Say("Yes.", lacking=100),
    "hang up": Say(hang_up=True),
    "not the dialect": Say(raw=b'{"choices": []}'),
    "no JSON": Say(raw=b"<html>"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_what_may_have_been_worked_on_stays_held_until_somebody_looks(tmp_path: Path, fault: str, dialect: str) -> None:
    with world(tmp_path, in_turn(FAULTS[fault], Say("Yes.")), dialect=dialect) as w:
        assert w.client.call("s", TURN, name="a").reply.text == "Yes."
        assert w.states == [State.UNCERTAIN, State.SETTLED]
        assert w.held >= 4 * 1000
        assert w.client.uncertain == 1
        assert w.ledger.check() == []


def test_an_answer_that_never_ends_is_given_up_at_the_time_limit(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("Yes.", stall=True), Say("Yes.")), timeout_s=0.5) as w:
        assert w.client.call("s", TURN, name="a").reply.text == "Yes."
        assert w.states == [State.UNCERTAIN, State.SETTLED]


def test_tries_are_bounded(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("oops", status=500))) as w:
        with pytest.raises(Unavailable, match="status 500: oops"):
            w.client.call("s", TURN, name="a")
        assert len(w.endpoint.asked) == 4
        assert w.slept == sorted(w.slept)


def test_nothing_listens(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("x")), nobody=True) as w:
        with pytest.raises(Unavailable, match="no connection"):
            w.client.call("s", TURN, name="a")
        assert set(w.states) == {State.RELEASED}


def test_a_refused_budget_sends_nothing(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("x")), budget=3999) as w:
        with pytest.raises(BudgetRefused) as refused:
            w.client.call("s", TURN, name="a")
        assert refused.value.exit_code == 4
        assert w.endpoint.asked == []


def test_an_uncertain_call_takes_from_what_is_left(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say(hang_up=True), Say("Yes.")), budget=6000) as w:
        with pytest.raises(BudgetRefused):
            w.client.call("s", TURN, name="a")
        assert len(w.endpoint.asked) == 1


def test_usage_that_is_not_told_is_not_zero(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("Yes.", usage=False))) as w:
        called = w.client.call("s", TURN, name="a")
        assert (called.reply.text, called.charge) == ("Yes.", None)
        assert w.states == [State.UNCERTAIN]


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
@pytest.mark.parametrize("say", [Say("half", cut=True), Say("half", output=1000)], ids=["told", "counted"])
def test_a_reply_that_ends_at_the_cap_is_cut(tmp_path: Path, dialect: str, say: Say) -> None:
    with world(tmp_path, in_turn(say), dialect=dialect) as w:
        assert w.client.call("s", TURN, name="a").reply.cut


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (Say(f"no such key {KEY}", status=401), "does not accept the key of OPENAI_API_KEY"),
        (Say("unknown model", status=404), "refuses the call: status 404: unknown model"),
        (Say("prompt is too long", status=400), "prompt is too long"),
        (Say("pay first", status=429, code="insufficient_quota"), "pay first"),
    ],
)
def test_what_no_patience_mends_is_said_at_once_and_never_with_the_key(tmp_path: Path, say: Say, words: str) -> None:
    with world(tmp_path, in_turn(say)) as w:
        with pytest.raises(BadInput) as refused:
            w.client.call("s", TURN, name="a")
        assert words in str(refused.value)
        assert KEY not in str(refused.value)
        assert len(w.endpoint.asked) == 1
        assert w.states == [State.RELEASED]
        assert w.held == 0
    assert KEY.encode() not in b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())


def test_the_key_is_taken_out_of_a_reply_that_repeats_it(tmp_path: Path) -> None:
    with world(tmp_path, lambda asked: Say(json.dumps(dict(asked.headers)))) as w:
        text = w.client.call("s", TURN, name="a").reply.text
        assert KEY not in text
        assert "***" in text


def test_a_word_that_is_no_secret_is_left_where_it_stands(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("EMPTY rows")), key="EMPTY") as w:
        assert w.client.call("s", TURN, name="a").reply.text == "EMPTY rows"


def test_newer_models_get_the_cap_under_its_newer_name(tmp_path: Path) -> None:
    def script(asked: Asked) -> Say:
        if "max_tokens" in asked.body:
            return Say("Unsupported parameter: use 'max_completion_tokens' instead.", status=400)
        return Say("Yes.")

    with world(tmp_path, script) as w:
        assert w.client.call("s", TURN, name="a").reply.text == "Yes."
        assert w.client.call("s", TURN, name="b").reply.text == "Yes."
        assert len(w.endpoint.asked) == 3
        assert w.client.uncertain == 0


def test_a_hold_that_a_killed_process_left_open_is_uncertain_and_not_used_again(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("Yes."))) as w:
        body = w.client._dialect.body("scripted", "s", TURN, 1000)
        left = w.client._reserve(body, "s", TURN, "a")
        assert w.client.call("s", TURN, name="a").reply.text == "Yes."
        states = {hold.key: hold.state for hold in w.ledger.holds()}
        assert states.pop(left.key) is State.UNCERTAIN
        assert list(states.values()) == [State.SETTLED]


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "https://user:pw@host/v1", "https://host/?k=x", ""])
def test_what_is_no_address_is_refused_and_a_password_is_not_repeated(tmp_path: Path, url: str) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger, pytest.raises(BadInput) as refused:
        Client(url, None, dialect_of("m", None), Settings("m"), ledger=ledger, prices=PRICES, scope=SCOPE)
    assert "pw" not in str(refused.value)
