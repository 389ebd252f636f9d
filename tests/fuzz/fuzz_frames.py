"""Coverage-guided fuzzing of the result channel with atheris: ``python tests/fuzz/fuzz_frames.py -max_total_time=60``.

Payloads and frames of any shape: nothing may raise, and nothing that was not signed may be believed.
"""

from __future__ import annotations

import hmac
import json
import sys

import atheris

with atheris.instrument_imports(include=["smith.harness", "smith.records"]):
    from smith.harness.channel import Decoder
    from smith.harness.judge import Account

KEY = b"k" * 32


def signed(payloads: list[bytes]) -> bytes:
    """Frames with the right length, number and signature around payloads of any content."""
    lines = []
    for number, payload in enumerate(payloads):
        mac = hmac.new(KEY, b"%d %s" % (number, payload), "sha256").hexdigest().encode()
        lines.append(b"%d %d %s %s\n" % (len(payload), number, mac, payload))
    return b"".join(lines)


def record(data: atheris.FuzzedDataProvider) -> bytes:
    """A payload: mostly a record with fields that fit or nearly fit, sometimes any text."""
    kind = data.PickValueInList(["hello", "announced", "start", "result", "end", "uncollected", "id", ""])
    if not kind:
        return data.ConsumeBytes(40).replace(b"\n", b"")
    test = data.PickValueInList(["a", "b", "c"])
    fields: dict[str, object] = {"kind": kind}
    if kind == "hello":
        fields |= {"python": "3", "pytest": "9"}
    elif kind == "end":
        fields |= {"status": data.ConsumeIntInRange(-1, 6)}
    else:
        fields["id"] = test
    if kind == "result":
        outcome = data.PickValueInList(["passed", "failed", "error", "none"])
        fields |= {"outcome": outcome, "seconds": 0.0, "failure": None, "message": "", "launches": {}}
    if data.ConsumeBool():
        fields[data.PickValueInList(["id", "more", "status"])] = data.ConsumeInt(2)
    return json.dumps(fields).encode()


def one_input(raw: bytes) -> None:
    """Frames of any shape are never believed; signed ones never make a pass of what was not announced and started."""
    data = atheris.FuzzedDataProvider(raw)
    decoder = Decoder(KEY)
    if data.ConsumeBool():
        decoder.feed(data.ConsumeBytes(len(raw)))
        assert not decoder.records
        return
    decoder.feed(signed([record(data) for _ in range(data.ConsumeIntInRange(0, 12))]))
    decoder.close()
    account = Account(frozenset({"a", "b"}))
    account.take(decoder.records)
    for one in account.verdict(["a", "b"], False):
        assert one.outcome.value != "passed" or one.id in account.announced


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
