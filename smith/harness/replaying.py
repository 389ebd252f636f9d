"""Make recorded calls on one tree in the sandbox, with given values, and say what came out.

Nothing that comes out is unpickled or trusted: lengths are checked against shape and type, and all of it is bounded.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from smith.harness.stage import Stage
from smith.oracle.arrays import Array, expected_bytes
from smith.oracle.compare import Outcome
from smith.records.workload import CallSpec
from smith.sandbox.base import Limits

MAX_BYTES = 512 << 20
"""Of all results of one process."""
MAX_LINE = 1 << 20
START_S = 180.0
"""What starting and importing may take at worst, on a busy machine."""
PASSES = 2
MOST_RESULTS = 256
MOST_DEPTH = 24
LAYOUTS = ("contiguous", "strided", "broadcast")


@dataclass(frozen=True)
class Made:
    """One call as it is to be made: with the bytes of its tensors, for each pass."""

    call: CallSpec
    passes: tuple[tuple[bytes, ...], ...]


@dataclass
class Replayed:
    """What came of the calls of one process: an outcome for each pass of each that was reached."""

    outcomes: dict[int, list[Outcome]] = field(default_factory=dict)
    begun: int | None = None
    """The call that had begun and not ended when the process did."""
    broken: str = ""
    """Why no call could be made, or what of the answer cannot be believed."""
    ending: str = "ok"
    timed_out: bool = False


class _Malformed(ValueError):
    """Bytes that are no answer."""


def replay(
    stage: Stage,
    calls: Sequence[Made],
    *,
    seed: int,
    call_s: float,
    crashes: int = 0,
    most_s: float = math.inf,
) -> list[list[Outcome]]:
    """The outcomes of each call, one a pass, in their order; a call that was not answered has one that says why.

    ``call_s`` bounds a call on average. A process that a call ends is begun anew behind it, ``crashes`` times, but not
    once ``most_s`` seconds have gone by.
    """
    found: dict[int, list[Outcome]] = {}
    why = "was not reached"
    began = time.monotonic()
    for attempt in range(crashes + 1):
        if attempt and time.monotonic() - began > most_s:
            break
        done = _once(stage, calls, sorted(found), seed, call_s)
        found |= {number: some for number, some in done.outcomes.items() if _whole(some)}
        if done.broken:
            why = done.broken
            break
        if done.begun is None:
            break
        found[done.begun] = [Outcome(error=f"the process ended in it ({done.ending})", reached=not done.timed_out)]
        why = f"was not reached: the process ended before it ({done.ending})"
    return [found.get(number, [Outcome(error=why, reached=False)]) for number in range(len(calls))]


def _whole(outcomes: Sequence[Outcome]) -> bool:
    return len(outcomes) == PASSES or any(one.error for one in outcomes)


def _once(stage: Stage, calls: Sequence[Made], skip: Sequence[int], seed: int, call_s: float) -> Replayed:
    plan: dict[str, Any] = {
        "root": stage.source,
        "python_path": list(stage.recipe.python_path),
        "prelude": stage.prelude_inside,
        "device_plugin": stage.plugin,
        "seed": seed,
        "skip": list(skip),
        "calls": [
            {
                "call": made.call.model_dump(mode="json", exclude_defaults=True) | {"kind": made.call.kind},
                "bytes": [len(blob) for blob in made.passes[0]],
            }
            for made in calls
        ],
    }
    data = b"".join(blob for made in calls for one in made.passes for blob in one)
    reader, writer = os.pipe()
    with ThreadPoolExecutor(1) as pool, os.fdopen(reader, "rb") as pipe:
        answer = pool.submit(pipe.read, MAX_BYTES + 1)
        try:
            ended = stage.run(
                stage.module("replay", str(writer)),
                Limits(wall_s=START_S + call_s * PASSES * (len(calls) - len(skip))),
                pass_fds=[writer],
                input=json.dumps(plan).encode() + b"\n" + data,
            )
        finally:
            os.close(writer)
        said = answer.result()
    replayed = Replayed(ending=ended.ending, timed_out=ended.timed_out)
    if len(said) > MAX_BYTES:
        replayed.broken = f"more than {MAX_BYTES >> 20} MiB of results"
        return replayed
    try:
        finished = _read(said, len(calls), replayed)
    except _Malformed as error:
        replayed.broken = f"an answer that is none: {error}"
        return replayed
    if finished:
        replayed.begun = None
    elif replayed.begun is None and not replayed.broken:
        words = ended.stderr.text.strip().splitlines()
        replayed.broken = f"no call could be made ({ended.ending}){': ' + words[-1][:300] if words else ''}"
    return replayed


def _read(data: bytes, calls: int, into: Replayed) -> bool:
    """Take an answer apart; whether it was finished. A frame cut off by a crash is only missing."""
    offset = 0
    while offset < len(data):
        end = data.find(b"\n", offset, offset + 12)
        if end < 0:
            if len(data) - offset < 12:
                return False
            raise _Malformed("no length")
        head = data[offset:end]
        if not head.isdigit() or int(head) > MAX_LINE:
            raise _Malformed("an odd length")
        begin, offset = end + 1, end + 1 + int(head)
        if offset > len(data):
            return False
        try:
            record = json.loads(data[begin:offset])
        except (ValueError, RecursionError) as error:
            raise _Malformed("a line that is no JSON") from error
        if not isinstance(record, dict):
            raise _Malformed("a line that is no record")
        if record.get("end") is True:
            return True
        offset = _take(record, data, offset, calls, into)
    return False


def _take(record: Mapping[str, Any], data: bytes, offset: int, calls: int, into: Replayed) -> int:
    """Take in one record; where the next begins."""
    if "broken" in record:
        into.broken = f"no call could be made: {_printable(record['broken'])}"
        return offset
    number = record.get("begin", record.get("call"))
    if type(number) is not int or not 0 <= number < calls:
        raise _Malformed("a call that was not asked for")
    if "begin" in record:
        into.begun = number
        return offset
    if number != into.begun:
        raise _Malformed("a call that was not begun")
    some = into.outcomes.setdefault(number, [])
    if "error" in record:
        some.append(Outcome(error=_printable(record["error"]) or "an error without words"))
        return offset
    if record.get("pass") != len(some) or len(some) >= PASSES:
        raise _Malformed("a pass out of order")
    outcome, offset = _outcome(record, data, offset)
    some.append(outcome)
    return offset


def _outcome(record: Mapping[str, Any], data: bytes, offset: int) -> tuple[Outcome, int]:
    reader = _Blobs(data, offset)
    try:
        outputs = record["outputs"]
        outcome = Outcome(
            skeleton=_shallow(record["skeleton"]),
            outputs=tuple(reader.take(one) for one in _some(outputs)),
            shares=tuple((_numbers(one["shares"]), _numbers(one["among"])) for one in outputs),
            grads=tuple(None if one is None else reader.take(one) for one in _some(record["grads"])),
            inputs=tuple(None if one is None else reader.take(one) for one in _some(record["inputs"])),
            overwritten=_numbers(record["overwritten"]),
            seconds=float(record["seconds"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise _Malformed(f"a result that is none ({type(error).__name__})") from error
    return outcome, reader.offset


class _Blobs:
    """The raw bytes that a record announces, one after the other."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._data, self.offset = data, offset

    def take(self, told: Mapping[str, Any]) -> Array:
        """The next. Raises :class:`ValueError` where its length is not that of its shape and type."""
        shape, dtype, size = _numbers(told["shape"]), str(told["dtype"]), told["bytes"]
        if told["layout"] not in LAYOUTS:
            raise ValueError("of no known layout")
        end = self.offset + expected_bytes(shape, dtype)
        if type(size) is not int or self.offset + size != end or end > len(self._data):
            raise ValueError("of another length than it says")
        array = Array(shape, dtype, told["layout"], self._data[self.offset : end])
        self.offset = end
        return array


def _shallow(skeleton: Any, depth: int = 0) -> Any:
    """A structure that is not nested too deep to be walked."""
    if depth > MOST_DEPTH:
        raise ValueError("nested too deep")
    if isinstance(skeleton, (dict, list)):
        for one in skeleton.values() if isinstance(skeleton, dict) else skeleton:
            _shallow(one, depth + 1)
    return skeleton


def _printable(words: Any) -> str:
    """What a process said, fit for a line of a report."""
    return "".join(c if c.isprintable() else "?" for c in str(words)[:300])


def _some(values: Any) -> Sequence[Any]:
    if not isinstance(values, list) or len(values) > MOST_RESULTS:
        raise ValueError("no list, or too long a one")
    return values


def _numbers(values: Any) -> tuple[int, ...]:
    if any(type(one) is not int for one in _some(values)):
        raise ValueError("no whole numbers")
    return tuple(values)
