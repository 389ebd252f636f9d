"""The writing end of the result channel: numbered, signed records, one a line.

``<length> <sequence> <HMAC-SHA256 of "sequence payload"> <payload>\\n``, the payload being JSON of that many bytes. The
reader outside (``smith.harness.channel``) holds the same key; a line that repository code writes to the descriptor
breaks the framing, the sequence or the signature, and is seen.
"""

from __future__ import annotations

import hmac
import json
import os
import threading
from collections.abc import Callable
from typing import Any

Send = Callable[..., None]


def open_channel(fd: int, key: bytes) -> Send:
    """A function ``send(kind, **fields)``. The key lives in its closure only, inside a prepared HMAC state.

    Everything it calls is bound here, before any repository code is loaded: replacing ``os.write`` or ``json.dumps``
    later changes nothing. In a forked child it does nothing, so that a test that forks does not report twice.
    """
    state = hmac.new(key, digestmod="sha256")
    os.set_inheritable(fd, False)
    owner, getpid, write = os.getpid(), os.getpid, os.write
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    lock = threading.Lock()
    sequence = 0

    def send(kind: str, **fields: Any) -> None:
        nonlocal sequence
        if getpid() != owner:
            return
        # Half a surrogate pair, as decoded file names have it, is no text that a reader would take.
        payload = encode({"kind": kind, **fields}).encode("utf-8", "replace")
        with lock:
            signed = b"%d %s" % (sequence, payload)
            mac = state.copy()
            mac.update(signed)
            line = b"%d %d %s %s\n" % (len(payload), sequence, mac.hexdigest().encode(), payload)
            sequence += 1
            while line:
                line = line[write(fd, line) :]

    return send
