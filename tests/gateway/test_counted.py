"""The bound of a prompt whose start was counted: never below what a model that counts by any tokenizer would say."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smith.gateway.asked import Asked, encoded, read_request
from smith.gateway.counted import Counted
from smith.gateway.dialects import CHAT, MESSAGES

TURN = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": st.text(max_size=60)})


def asked(turns: list[Any], **more: Any) -> Asked:
    return read_request(CHAT, json.dumps({"model": "m", "messages": turns, "max_tokens": 100, **more}).encode())


def tokens(one: Asked, per_byte: float) -> int:
    """A tokenizer that gives at most a token for each byte of text, and a few for each turn."""
    turns = sum(int(len(turn["content"].encode()) * per_byte) + 8 for turn in one.body["messages"])
    rest = sum(len(str(one.body.get(key, ""))) for key in ("tools", "system"))
    return turns + int(rest * per_byte)


@given(
    st.lists(TURN, max_size=5), st.lists(TURN, max_size=5), st.floats(0, 1), st.text(max_size=30), st.text(max_size=30)
)
def test_it_is_a_bound(first: list[Any], more: list[Any], per_byte: float, system: str, other: str) -> None:
    counted = Counted()
    before, after = asked(first, system=system), asked([*first, *more], system=other)
    counted.remember(before, tokens(before, per_byte))
    bound = counted.bound(after)
    assert bound is not None
    assert bound >= tokens(after, per_byte)


def test_it_is_far_below_the_bytes_where_little_was_added() -> None:
    counted = Counted()
    long = {"role": "user", "content": "x" * 100_000}
    counted.remember(asked([long]), 25_000)
    bound = counted.bound(asked([long, {"role": "assistant", "content": "y"}]))
    assert bound is not None
    assert 25_000 < bound < 25_600


def test_another_conversation_gives_no_bound() -> None:
    counted = Counted()
    one, two = {"role": "user", "content": "one"}, {"role": "user", "content": "two"}
    counted.remember(asked([one, two]), 10)
    assert counted.bound(asked([one])) is None
    assert counted.bound(asked([two, two, one])) is None
    assert counted.bound(asked([one, two], truncation="auto")) is None
    counted.remember(asked([one], context_management={"edits": [{"type": "clear_tool_uses_20250919"}]}), 1)
    assert counted.bound(asked([one])) is None
    all_kept = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    counted.remember(asked([one], context_management=all_kept), 1)
    assert counted.bound(asked([one], context_management=all_kept)) is not None


def test_marks_of_caching_may_move_and_a_part_of_a_system_prompt_may_change() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}

    def claude(turns: list[Any], head: str) -> Asked:
        system = [{"type": "text", "text": head}, {"type": "text", "text": "s" * 9000}]
        return Asked(MESSAGES, {"model": "m", "messages": turns, "system": system, "max_tokens": 9}, (), 0)

    text = {"type": "text", "text": "x" * 5000}
    counted = Counted()
    counted.remember(claude([{"role": "user", "content": [{**text, **mark}]}], "a"), 4000)
    after = claude([{"role": "user", "content": [text]}, {"role": "user", "content": [{**text, **mark}]}], "b")
    bound = counted.bound(after)
    assert bound is not None
    assert 4000 + 5000 < bound < len(encoded(after.body)) - 5000
