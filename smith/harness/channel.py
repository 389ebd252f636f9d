"""The reading end of the result channel (``smith.inside.channel`` is the other one).

What comes through is believed only as far as it is framed, numbered and signed; the first fault ends belief, and
what came before it is kept. Whoever holds the key can still lie, but never make this process raise.
"""

from __future__ import annotations

import hmac
import os
import secrets
import select
import threading
from types import TracebackType
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError

from smith.records.base import Record
from smith.records.compiled import CompiledFile, CompiledLaunch, Launch
from smith.records.memory import MemoryFinding
from smith.records.results import Failure, Outcome
from smith.records.workload import CallSpec, LeftOut

MAX_RECORD = 1 << 20
MAX_TOTAL = 512 << 20
MAX_FINDINGS = 100
MAX_ALTERED = 200


class Hello(Record):
    kind: Literal["hello"]
    python: str
    pytest: str


class Uncollected(Record):
    """A file or folder (``""``: everything) that gave no test ids."""

    kind: Literal["uncollected"]
    node: str
    error: str
    """Class of the exception."""
    failure: Failure
    message: str
    refused: bool
    """The device refused it by name."""
    skipped: bool


class Collected(Record):
    """A test id. ``function`` is it without parameters, ``size`` the product of its whole-number parameters."""

    kind: Literal["id"] = "id"
    id: str
    file: str
    function: str
    size: int


class Announced(Record):
    kind: Literal["announced"]
    id: str


class Start(Record):
    kind: Literal["start"]
    id: str


class Result(Record):
    kind: Literal["result"]
    id: str
    outcome: Outcome
    seconds: float
    failure: Failure | None
    message: str
    launches: dict[str, int]
    findings: tuple[MemoryFinding, ...] = Field(default=(), max_length=MAX_FINDINGS)


class Captured(Launch):
    """A distinct launch of a kernel."""

    kind: Literal["launch"]


class Recorded(Record):
    """A distinct call into the package, made by a test."""

    kind: Literal["call"]
    call: CallSpec
    test: str
    seconds: float
    launches: int


class Compiler(Record):
    """What compiles captured launches, and for which of the targets asked for it can."""

    kind: Literal["compiler"]
    triton: str
    targets: tuple[str, ...]
    note: str = ""
    """What it leaves out."""


class Compiled(CompiledLaunch):
    """What came of one launch, by its number in the plan."""

    kind: Literal["compiled"]
    target: str
    launch: int


class Clang(Record):
    """What compiles files of device code."""

    kind: Literal["clang"]
    version: str


class FileCompiled(CompiledFile):
    """What came of one file on one target."""

    kind: Literal["file"]
    target: str


class End(Record):
    kind: Literal["end"]
    status: int
    stopped: bool = False
    uncaptured: int = 0
    """Launches that were to be told and were too many or too large."""
    unrecorded: tuple[LeftOut, ...] = Field(default=(), max_length=100)
    """Calls that were to be recorded and cannot be made again."""
    altered: tuple[str, ...] = Field(default=(), max_length=MAX_ALTERED)
    """What of the test framework, comparisons, clocks and hooks is not as it was before the repository was loaded."""


class ChildEnded(Record):
    """How the process of one plan ended; said by the process that forked it, over a channel of its own."""

    kind: Literal["ended"]
    plan: int
    status: int
    timed_out: bool
    seconds: float


AnyRecord = (
    Hello
    | Uncollected
    | Collected
    | Announced
    | Start
    | Result
    | Captured
    | Recorded
    | Compiler
    | Compiled
    | Clang
    | FileCompiled
    | End
    | ChildEnded
)
_PARSE: TypeAdapter[AnyRecord] = TypeAdapter(Annotated[AnyRecord, Field(discriminator="kind")])


class Decoder:
    """Bytes in, records out. ``fault`` says in a few words why it stopped believing."""

    def __init__(self, key: bytes) -> None:
        self._state = hmac.new(key, digestmod="sha256")
        self._buffer = bytearray()
        self._total = 0
        self.records: list[AnyRecord] = []
        self.fault: str | None = None

    def feed(self, data: bytes) -> None:
        """Take in more bytes; after a fault they are dropped."""
        if self.fault is not None:
            return
        self._total += len(data)
        self._buffer += data
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            self._line(line)
            if self.fault is not None:
                return
        if len(self._buffer) > MAX_RECORD:
            self.fault = "a record without end"
        elif self._total > MAX_TOTAL:
            self.fault = "too much was sent"

    def close(self) -> None:
        """There is nothing more. A record cut off by a crash is only missing."""
        self._buffer.clear()

    def _line(self, line: bytes) -> None:
        parts = line.split(b" ", 3)
        if len(parts) != 4 or not (parts[0].isdigit() and parts[1].isdigit()):
            self.fault = "a line that is no record"
            return
        length, sequence, mac, payload = parts
        if length != b"%d" % len(payload) or len(line) > MAX_RECORD:
            self.fault = "a record of another length than it says"
            return
        signed = self._state.copy()
        signed.update(sequence + b" " + payload)
        if not hmac.compare_digest(signed.hexdigest().encode(), mac):
            self.fault = "a record with a wrong signature"
        elif sequence != b"%d" % len(self.records):
            self.fault = f"record {sequence[:20].decode()} where {len(self.records)} was due"
        else:
            try:
                self.records.append(_PARSE.validate_json(payload))
            except ValidationError:
                self.fault = "a signed record of unknown shape"


class Channel:
    """A pipe whose :attr:`fd` goes to the child, read in a thread all the while, so that the child never waits."""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(32)
        self._read, self.fd = os.pipe()
        self._decoder = Decoder(self.key)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._pump, name="smith-channel", daemon=True)

    @property
    def records(self) -> list[AnyRecord]:
        """What was received and believed; whole only after the context has been left."""
        return self._decoder.records

    @property
    def fault(self) -> str | None:
        """Why belief ended, if it did."""
        return self._decoder.fault

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)
        # Without isolation a survivor may still hold the pipe: then what lies in it is read, and no more.
        self._done.set()
        self._thread.join()
        os.close(self._read)
        self._decoder.close()

    def _pump(self) -> None:
        while True:
            ready, _, _ = select.select([self._read], [], [], 0.05)
            if ready:
                data = os.read(self._read, 1 << 16)
                if not data:
                    return
                self._decoder.feed(data)
            elif self._done.is_set():
                return
