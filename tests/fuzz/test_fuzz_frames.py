"""Frames that were cut, doubled, reordered or bent: nothing raises, and nothing is believed that was not said."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smith.harness.channel import AnyRecord, Decoder
from smith.harness.judge import Account
from smith.inside.channel import open_channel
from smith.records.results import Outcome

KEY = b"k" * 32
IDS = ("a", "b", "c")


def said(words: Sequence[tuple[str, dict[str, Any]]]) -> list[bytes]:
    """The lines of the inside's own writer."""
    read, write = os.pipe()
    send = open_channel(write, KEY)
    for kind, fields in words:
        send(kind, **fields)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        return file.readlines()


def result(test: str, outcome: str) -> tuple[str, dict[str, Any]]:
    more = {"seconds": 0.1, "failure": None, "message": "", "launches": {}}
    return "result", {"id": test, "outcome": outcome, **more}


HONEST = said(
    [
        ("hello", {"python": "3", "pytest": "9"}),
        *[("announced", {"id": i}) for i in IDS],
        *[word for i in IDS for word in (("start", {"id": i}), result(i, "failed"))],
        ("end", {"status": 1}),
    ]
)


def believed(data: bytes) -> tuple[list[AnyRecord], str | None]:
    decoder = Decoder(KEY)
    decoder.feed(data)
    decoder.close()
    return decoder.records, decoder.fault


WHOLE, _ = believed(b"".join(HONEST))


@given(st.binary(max_size=400))
def test_bytes_without_the_key_say_nothing(data: bytes) -> None:
    records, _ = believed(data)
    assert records == []


@given(st.lists(st.integers(0, len(HONEST) - 1), max_size=20))
def test_lines_left_out_doubled_or_in_another_order_are_seen(order: list[int]) -> None:
    records, fault = believed(b"".join(HONEST[i] for i in order))
    good = next((n for n, i in enumerate(order) if i != n), len(order))
    assert records == WHOLE[:good]
    assert (fault is None) == (good == len(order))


@given(st.integers(0, sum(map(len, HONEST)) - 1), st.integers(1, 255))
def test_one_bent_byte_ends_belief_there(at: int, mask: int) -> None:
    data = bytearray(b"".join(HONEST))
    data[at] ^= mask
    records, fault = believed(bytes(data))
    assert records == WHOLE[: len(records)]
    assert fault is not None or len(records) < len(WHOLE)


WORD = st.one_of(
    st.tuples(st.just("announced"), st.builds(dict, id=st.sampled_from([*IDS, "d"]))),
    st.tuples(st.just("start"), st.builds(dict, id=st.sampled_from(IDS))),
    st.builds(result, st.sampled_from(IDS), st.sampled_from(["passed", "failed"])),
    st.tuples(st.just("hello"), st.just({"python": "3", "pytest": "9"})),
    st.tuples(st.just("end"), st.just({"status": 0})),
)


@given(st.lists(WORD, max_size=25))
def test_whoever_holds_the_key_passes_only_what_was_announced_started_and_finished_in_that_order(
    words: list[tuple[str, dict[str, Any]]],
) -> None:
    records, fault = believed(b"".join(said(words)))
    assert fault is None
    account = Account(frozenset(IDS))
    account.take(records)
    steps = [(kind, fields.get("id")) for kind, fields in words]
    for one in account.verdict(IDS, False):
        if one.outcome is Outcome.PASSED:
            began = steps.index(("start", one.id))
            assert ("announced", one.id) in steps[:began]
            assert steps[began + 1] == ("result", one.id)
    if account.complete:
        assert steps[0][0] == "hello" and steps[-1][0] == "end"
        assert [kind for kind, _ in steps].count("end") == 1
