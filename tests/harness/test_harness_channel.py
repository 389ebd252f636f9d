"""Frames: what the inside writes is read, and everything else ends belief."""

from __future__ import annotations

import os

import pytest

from smith.harness.channel import MAX_RECORD, Announced, Channel, Collected, Decoder, End, Start
from smith.inside.channel import open_channel

KEY = b"k" * 32


def written(*records: tuple[str, dict[str, object]], key: bytes = KEY) -> bytes:
    """What the inside's own writer makes of some records."""
    read, write = os.pipe()
    send = open_channel(write, key)
    for kind, fields in records:
        send(kind, **fields)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        return file.read()


THREE = written(("start", {"id": "a"}), ("start", {"id": "b\u00e9\n"}), ("end", {"status": 0}))


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_what_was_written_is_read_however_it_is_cut(step: int) -> None:
    decoder = Decoder(KEY)
    for at in range(0, len(THREE), step):
        decoder.feed(THREE[at : at + step])
    assert decoder.fault is None
    assert decoder.records == [Start(kind="start", id="a"), Start(kind="start", id="bé\n"), End(kind="end", status=0)]


def test_text_that_is_no_unicode_is_no_fault() -> None:
    decoder = Decoder(KEY)
    decoder.feed(written(("start", {"id": "a\udc80b\u2028\n"})))
    assert decoder.records == [Start(kind="start", id="a?b\u2028\n")] and decoder.fault is None


def test_a_record_cut_off_by_a_crash_is_only_missing() -> None:
    decoder = Decoder(KEY)
    decoder.feed(THREE[:-10])
    decoder.close()
    assert decoder.fault is None and len(decoder.records) == 2


LINES = THREE.splitlines(keepends=True)


@pytest.mark.parametrize(
    ("data", "kept", "fault"),
    [
        (LINES[0] + b'{"kind": "end"}\n' + LINES[1], 1, "a line that is no record"),
        (LINES[0] + b"\n" + LINES[1], 1, "a line that is no record"),
        (LINES[0] + b"half" + LINES[1], 1, "a line that is no record"),
        (LINES[0] + b"1" + LINES[1], 1, "a record of another length than it says"),
        (LINES[0] + LINES[0], 1, "record 0 where 1 was due"),
        (LINES[0] + LINES[2], 1, "record 2 where 1 was due"),
        (written(("start", {"id": "a"}), key=b"x" * 32), 0, "a record with a wrong signature"),
        (LINES[0].replace(b'"a"', b'"b"'), 0, "a record with a wrong signature"),
        (written(("start", {"id": 1})), 0, "a signed record of unknown shape"),
        (written(("start", {"id": "a", "more": 1})), 0, "a signed record of unknown shape"),
        (written(("other", {})), 0, "a signed record of unknown shape"),
        (b"x" * (MAX_RECORD + 1), 0, "a record without end"),
        (b"\xff\x00 \xff 1 {}\n", 0, "a line that is no record"),
    ],
)
def test_the_first_fault_ends_belief_and_what_came_before_is_kept(data: bytes, kept: int, fault: str) -> None:
    decoder = Decoder(KEY)
    decoder.feed(data)
    decoder.feed(THREE)
    assert (len(decoder.records), decoder.fault) == (kept, fault)


def test_a_channel_is_read_while_the_writer_writes_more_than_a_pipe_holds() -> None:
    with Channel() as channel:
        send = open_channel(os.dup(channel.fd), channel.key)
        for number in range(5000):
            send("announced", id=f"{number}" * 20)
        # A second holder of the pipe, as a surviving process would be, does not keep the reader waiting.
    assert channel.fault is None and len(channel.records) == 5000
    assert isinstance(channel.records[0], Announced)


def test_a_collected_id_carries_what_selection_needs() -> None:
    decoder = Decoder(KEY)
    decoder.feed(written(("id", {"id": "f.py::t[1]", "file": "f.py", "function": "f.py::t", "size": 1})))
    assert decoder.records == [Collected(id="f.py::t[1]", file="f.py", function="f.py::t", size=1)]
