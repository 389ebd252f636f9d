"""The gateway over real HTTP: what passes it untouched, what each call costs, and every way in which one goes wrong."""

from __future__ import annotations

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from smith.gateway.asked import FRAMING_TOKENS
from smith.gateway.paying import Payer
from smith.gateway.rates import Rates
from smith.ledger import Amounts, Ledger, Limits, State
from smith.ledger.prices import Prices
from smith.records.gateway import RateRow
from smith.records.prices import PriceRow
from tests.gateway.gateway_world import KEY, MODEL, PATHS, TOKEN, client, gateway_at, request, world
from tests.gateway.scripted_model import Asked, Say, document, events, in_turn, serving

FAMILY = {"chat": "openai", "responses": "openai", "messages": "anthropic"}
DIALECTS = sorted(FAMILY)
RICH = Say("Two words.", calls=(("bash", {"command": "ls"}),), thought="hm", read=30, wrote=9, cached=12)
RICH_USD = (30 - 12) * 1 + 6 + 9 * 4
TOOLS = {
    "chat": [{"type": "function", "function": {"name": "bash", "parameters": {}}}],
    "responses": [{"type": "function", "name": "bash", "parameters": {}}],
    "messages": [{"name": "bash", "input_schema": {}}],
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_answer_passes_untouched_and_is_settled_at_its_usage(tmp_path: Path, dialect: str) -> None:
    with world(tmp_path, in_turn(RICH), family=FAMILY[dialect]) as w:
        answer = w.ask(dialect, tools=TOOLS[dialect])
        assert answer.status_code == 200
        (asked,) = w.model.asked
        assert answer.json() == document(asked, RICH)
        assert asked.body == request(dialect, tools=TOOLS[dialect])
        assert asked.path == PATHS[dialect]
        assert w.states == [State.SETTLED]
        assert w.spent == RICH_USD
        (hold,) = w.ledger.holds()
        assert hold.used is not None
        assert (hold.used.input_tokens, hold.used.output_tokens, hold.used.cached_tokens) == (30, 9, 12)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_passes_byte_for_byte_as_it_comes(tmp_path: Path, dialect: str) -> None:
    go_on = threading.Event()
    say = Say("Two words.", calls=(("bash", {"command": "ls"}),), thought="hm", hold=go_on)
    with world(tmp_path, in_turn(say), family=FAMILY[dialect]) as w:
        more = {"stream_options": {"include_usage": True}} if dialect == "chat" else {}
        with w.stream(dialect, **more) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            chunks = answer.iter_raw()
            got = next(chunks)
            # The model has not said more yet: what is here came through by itself.
            assert got == events(w.model.asked[0], say)[0]
            assert w.states == [State.OPEN]
            assert w.held > 4000
            go_on.set()
            got += b"".join(chunks)
        assert got == b"".join(events(w.model.asked[0], say))
        assert w.states == [State.SETTLED]
        assert (w.spent, w.held) == ((20 - 5) + 3 + 7 * 4, 0)


def test_a_usage_that_the_agent_did_not_ask_for_is_not_shown_to_it(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(RICH)) as w, w.stream("chat") as answer:
        got = answer.read()
        assert b'"usage"' not in got
        assert got.endswith(b"data: [DONE]\n\n")
        assert w.model.asked[0].body["stream_options"] == {"include_usage": True}
        assert w.spent == RICH_USD


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_breaks_in_the_middle_breaks_for_the_agent_too_and_keeps_its_hold(
    tmp_path: Path, dialect: str
) -> None:
    with world(tmp_path, in_turn(Say("one two three four", break_after=3)), family=FAMILY[dialect]) as w:
        got = b""
        with pytest.raises(httpx.RemoteProtocolError), w.stream(dialect) as answer:
            for chunk in answer.iter_raw():
                got += chunk
        assert got == b"".join(events(w.model.asked[0], Say("one two three four"))[:3])
        assert w.states == [State.UNCERTAIN]
        assert (w.spent, w.held) == (0, w.ledger.holds()[0].ceiling.usd_micros)
        assert w.held > 4000
        assert len(w.model.asked) == 1  # what an agent has seen a part of is not asked again behind its back


class NeverSettles(Payer):
    def settle(self, *given: Any) -> Any:
        raise OSError("no space left")


@pytest.mark.parametrize("stream", [False, True])
def test_a_defect_leaves_nobody_waiting_and_no_hold_open(tmp_path: Path, stream: bool) -> None:
    with world(tmp_path, in_turn(Say("one two")), payer=NeverSettles) as w:
        if stream:
            with pytest.raises(httpx.RemoteProtocolError), w.stream() as answer:
                answer.read()
        else:
            assert w.ask().status_code == 503
        assert w.states == [State.UNCERTAIN]
        w.ask()
        assert w.lines[0]["outcome"] == "defect"
        assert "no space left" in w.lines[0]["tries"][-1]["defect"]


FAULTS = {
    "500": (Say("oops", status=500), State.UNCERTAIN),
    "broken body": (Say("Yes.", break_after=20), State.UNCERTAIN),
    "429": (Say("slow down", status=429), State.RELEASED),
    "529": (Say("overloaded", status=529), State.RELEASED),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_try_is_charged_by_itself(tmp_path: Path, fault: str) -> None:
    say, state = FAULTS[fault]
    with world(tmp_path, in_turn(say, say, Say("Yes."))) as w:
        assert w.ask().status_code == 200
        assert w.states == [state, state, State.SETTLED]
        ceiling = w.ledger.holds()[0].ceiling.usd_micros
        assert w.held == (2 * ceiling if state is State.UNCERTAIN else 0)
        assert w.spent == 15 + 3 + 28
        (line,) = w.lines
        assert [one.get("status", 0) for one in line["tries"]][-1] == 200
        assert len(line["tries"]) == 3


def test_tries_end_and_the_agent_is_told(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("oops", status=500))) as w:
        answer = w.ask()
        assert answer.status_code == 500
        assert "oops" in answer.json()["error"]["message"]
        assert len(w.model.asked) == 4
        assert w.gateway.session.totals.faults == 1
        assert not w.gateway.session.over.is_set()


def test_nobody_there_costs_nothing(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say()), url="http://127.0.0.1:9/v1") as w:
        assert w.ask().status_code == 502
        assert set(w.states) == {State.RELEASED}


def test_what_the_endpoint_refuses_goes_back_to_the_agent(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("prompt is too long", status=400, code="context_length_exceeded"))) as w:
        answer = w.ask()
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "context_length_exceeded"
        assert w.states == [State.RELEASED]


@pytest.mark.parametrize("status", [401, 402, 404])
def test_a_refused_key_or_model_ends_the_attempt(tmp_path: Path, status: int) -> None:
    with world(tmp_path, in_turn(Say(f"no such key: {KEY}", status=status))) as w:
        answer = w.ask()
        assert answer.status_code == 403
        assert answer.headers["x-should-retry"] == "false"
        assert KEY not in answer.text
        assert w.gateway.session.why == "provider"
        assert KEY not in w.gateway.session.detail
        assert w.http.get("/smith/over").json() == {"why": "provider"}


def test_newer_models_get_the_cap_under_its_newer_name(tmp_path: Path) -> None:
    def script(asked: Asked) -> Say:
        newer = "max_completion_tokens" in asked.body
        return Say("Yes.") if newer else Say("use max_completion_tokens instead of max_tokens", status=400)

    with world(tmp_path, script) as w:
        assert [w.ask().status_code, w.ask().status_code] == [200, 200]
        assert len(w.model.asked) == 3
        assert "max_tokens" not in w.model.asked[-1].body


def test_a_cap_is_never_raised_and_a_missing_one_is_set(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("Yes.", wrote=5))) as w:
        assert w.ask(max_tokens=20).status_code == 200
        body = {key: value for key, value in request("chat").items() if key != "max_tokens"}
        assert w.http.post(PATHS["chat"], json=body).status_code == 200
        assert w.ask(max_tokens=10**6).status_code == 200
        assert [asked.cap for asked in w.model.asked] == [20, 32_000, 32_000]


def test_only_the_token_and_only_the_model_of_the_attempt(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("Yes."))) as w:
        with client(w.gateway, "another-token") as stranger:
            assert stranger.post(PATHS["chat"], json=request("chat")).status_code == 401
            assert stranger.get("/v1/models").status_code == 401
        assert w.ask(model="dearer").status_code == 404
        assert w.ask("messages").status_code == 400
        assert w.http.post("/v1/embeddings", json={}).status_code == 404
        assert w.http.get("/v1/models").json()["data"][0]["id"] == MODEL
        assert w.http.post(PATHS["chat"], content=b"{").status_code == 400
        assert w.http.post("/chat/completions", json=request("chat")).status_code == 200
        assert len(w.model.asked) == 1


@pytest.mark.parametrize(
    ("dialect", "more"),
    [
        ("chat", {"n": 3}),
        ("chat", {"service_tier": "priority"}),
        ("chat", {"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]}),
        ("responses", {"previous_response_id": "resp_1"}),
        ("responses", {"background": True}),
        ("messages", {"mcp_servers": [{"url": "https://x"}]}),
        ("messages", {"speed": "fast"}),
    ],
)
def test_what_no_ceiling_would_cover_is_refused(tmp_path: Path, dialect: str, more: dict[str, object]) -> None:
    with world(tmp_path, in_turn(Say()), family=FAMILY[dialect]) as w:
        answer = w.ask(dialect, **more)
        assert answer.status_code == 400
        assert w.model.asked == []
        assert w.states == []


def test_tools_that_the_endpoint_would_run_are_left_out_and_that_is_written_down(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("Yes."))) as w:
        assert w.ask("responses", tools=[{"type": "web_search"}, *TOOLS["responses"]]).status_code == 200
        assert w.model.asked[0].body["tools"] == TOOLS["responses"]
        assert w.lines[0]["dropped_tools"] == ["web_search"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_is_final_in_the_words_of_the_dialect(tmp_path: Path, dialect: str) -> None:
    with world(tmp_path, in_turn(Say()), family=FAMILY[dialect], budget=300) as w:
        answer = w.ask(dialect)
        assert answer.status_code == 402
        assert answer.headers["x-should-retry"] == "false"
        error = answer.json()["error"]
        assert error["type"] == ("billing_error" if dialect == "messages" else "insufficient_quota")
        assert "eval/run" in error["message"]
        assert w.model.asked == []
        assert w.gateway.session.why == "budget"
        assert w.gateway.session.totals.refused == 1
        assert w.lines[0]["outcome"] == "budget"


def test_a_cap_is_lowered_to_what_is_left(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("Yes.", wrote=300)), budget=3000) as w:
        assert w.ask().status_code == 200
        (asked,) = w.model.asked
        # The ceiling of what was sent is as near to the limit as a token's price allows.
        bound = len(asked.raw) + 2 * FRAMING_TOKENS
        assert 3000 - 8 <= bound + 4 * asked.cap <= 3000


def test_a_model_of_ones_own_is_paid_by_the_time_of_its_device(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say()), prices=Prices({MODEL: PriceRow(device_hour=Decimal(36))})) as w:
        assert w.ask().status_code == 200
        (hold,) = w.ledger.holds()
        assert hold.used is not None
        assert hold.ceiling.usd_micros == 36_000_000 * 20 // 3600
        assert 0 < hold.used.device_ms < 5000
        assert hold.used.usd_micros == hold.used.device_ms * 10


def test_an_agent_that_leaves_pays_for_what_it_asked(tmp_path: Path) -> None:
    go_on = threading.Event()
    with world(tmp_path, in_turn(Say("one two", hold=go_on))) as w:
        with w.stream() as answer:
            next(answer.iter_raw())
        w.http.close()
        assert w.states == [State.OPEN]
        threading.Timer(0.2, go_on.set).start()
        # The world closes the gateway here, which waits for what is under way.
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert [hold.state for hold in ledger.holds()] == [State.SETTLED]


def test_four_attempts_hit_one_budget_in_mid_call_and_not_a_micro_dollar_is_over(tmp_path: Path) -> None:
    budget = 40_000

    def script(asked: Asked) -> Say:
        # As dear as it may be: every token of the cap, and every byte of the prompt a token.
        return Say("word " * 3, read=len(asked.raw), wrote=asked.cap, cached=0, wait_s=0.01)

    folders = [tmp_path / f"attempt-{n}" for n in range(4)]
    with (
        serving(script) as model,
        Ledger.open(tmp_path / "ledger.db") as ledger,
        contextlib.ExitStack() as stack,
    ):
        ledger.set_limit("eval/run", Limits(usd_micros=budget), who="test", why="test")
        most = 0

        def watch() -> None:
            nonlocal most
            balance = ledger.balance("eval/run")
            most = max(most, balance.spent.usd_micros + balance.held.usd_micros)

        def attempt(n: int) -> list[int]:
            scope = f"eval/run/task/attempt-{n:03d}"
            gateway = stack.enter_context(gateway_at(folders[n], model, ledger, scope=scope))
            statuses = []
            with client(gateway) as http:
                while not statuses or statuses[-1] == 200:
                    if n % 2:
                        with http.stream("POST", PATHS["chat"], json=request("chat", stream=True)) as answer:
                            answer.read()
                    else:
                        answer = http.post(PATHS["chat"], json=request("chat"))
                    statuses.append(answer.status_code)
                    watch()
            return statuses

        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(attempt, range(4)))
        assert all(statuses[-1] == 402 for statuses in done)
        assert sum(statuses.count(200) for statuses in done) == len(model.asked) >= 8
        balance = ledger.balance("eval/run")
        assert balance.held.usd_micros == 0
        assert most <= budget
        # All but what no further call could have been made with.
        assert budget - 4 * 256 - 500 <= balance.spent.usd_micros <= budget
        assert ledger.check() == []


def test_a_call_waits_for_what_another_may_give_back(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("Yes.")), budget=5000) as w:
        w.ledger.reserve("eval/run/task/attempt-002", Amounts(usd_micros=3000), key="other")
        threading.Timer(0.5, lambda: w.ledger.release("other")).start()
        assert w.ask().status_code == 200
        assert w.model.asked[0].cap == 1000


def test_many_calls_at_once_wait_for_each_other_and_none_is_refused_or_cut_short(tmp_path: Path) -> None:
    """There is money for one ceiling at a time: who settles must never wait behind those who wait for it."""
    calls = 12
    with world(tmp_path, in_turn(Say("Yes.")), budget=5000 + calls * 46, patience_s=60.0) as w:
        with ThreadPoolExecutor(calls) as pool:
            assert {answer.status_code for answer in pool.map(lambda n: w.ask(), range(calls))} == {200}
        assert {asked.cap for asked in w.model.asked} == {1000}
        assert w.spent == calls * 46


def test_secrets_are_nowhere(tmp_path: Path) -> None:
    """An endpoint that quotes the key in every place, over several chunks of a stream, in headers and in errors."""
    said = json.dumps({"key": KEY, "token": TOKEN})
    script = in_turn(Say(said), Say(f"x {KEY} y"), Say(KEY, status=400, headers={"x-request-id": KEY}), Say("end"))
    with world(tmp_path, script) as w:
        texts = [w.ask(prompt_cache_key=TOKEN).text]
        with w.stream() as answer:
            texts.append(answer.read().decode())
        refused = w.ask()
        texts += [refused.text, str(refused.headers), w.http.get("/v1/models").text]
        assert w.model.asked[0].headers["authorization"] == f"Bearer {KEY}"
        assert TOKEN not in str(w.model.asked[0].headers)
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"***" in written
    for secret in (KEY, TOKEN):
        assert secret.encode() not in written
        assert not [text for text in texts if secret in text]


def test_the_record_tells_each_exchange_once_and_what_repeats_by_name(tmp_path: Path) -> None:
    first = [{"role": "user", "content": "x" * 500}]
    second = [*first, {"role": "assistant", "content": "y"}, {"role": "user", "content": "z"}]
    with world(tmp_path, in_turn(Say("Yes."))) as w:
        w.ask(messages=first, tools=TOOLS["chat"])
        w.ask(messages=second, tools=TOOLS["chat"])
        one, two = w.lines
    assert one["request"]["body"]["messages"] == first
    assert two["request"]["like"] == one["n"]
    assert two["request"]["body"]["messages"] == second[two["request"]["same"] :] == second[1:]
    assert set(two["request"]["unchanged"]) == {"model", "max_tokens", "tools"}
    assert (tmp_path / "attempt" / "exchanges.jsonl").stat().st_mode & 0o077 == 0


def test_a_pause_that_the_provider_asks_for_holds_for_all(tmp_path: Path) -> None:
    script = in_turn(Say("busy", status=429, headers={"Retry-After": "1"}), Say("Yes."))
    with (
        world(tmp_path, script) as w,
        gateway_at(tmp_path / "other", w.model, w.ledger) as other,
        client(other) as http,
    ):
        w.gateway.session.rates.pause(1.0)
        assert not other.session.rates.free
        assert http.post(PATHS["chat"], json=request("chat")).status_code == 200
        assert len(w.model.asked) == 2


def test_no_more_calls_at_once_than_allowed(tmp_path: Path) -> None:
    with world(tmp_path, in_turn(Say("Yes.", wait_s=0.1)), rates=RateRow(at_once=2)) as w:
        with ThreadPoolExecutor(6) as pool:
            assert {r.status_code for r in pool.map(lambda n: w.ask(), range(6))} == {200}
        assert w.model.most == 2


def test_no_more_calls_a_minute_than_allowed(tmp_path: Path) -> None:
    now, slept = [1000.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    both = [Rates(tmp_path, "p", RateRow(requests_per_minute=3), clock=lambda: now[0], sleep=sleep) for _ in range(2)]
    for n in range(9):
        assert both[n % 2].enter(deadline=2000.0) is not None
        now[0] += 1
    assert slept == [57.0, 57.0]
    assert both[0].enter(deadline=now[0] + 1) is None
