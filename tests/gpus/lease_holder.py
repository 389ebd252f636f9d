"""A process that takes leases, for the tests: ``python lease_holder.py FOLDER CARD,CARD WAIT_S HOLD_S [LOG]``.

Says ``held CARD`` when it has one and ``refused: ...`` when the time is over. With LOG it appends ``+CARD`` when it
holds and ``-CARD`` before it gives back, each in one write.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from smith.gpus.base import Gpu
from smith.gpus.lease import DeviceBusy, Leases


def gpu(card: str) -> Gpu:
    return Gpu(kind="rocm", architecture="gfx942", name="AMD Instinct MI300X", card=card, uuid="", index=0)


def main(folder: str, cards: str, wait_s: str, hold_s: str, log: str = "") -> int:
    def note(word: str) -> None:
        if log:
            handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(handle, f"{word}\n".encode())
            os.close(handle)

    leases = Leases(Path(folder), lambda gpu: ())
    try:
        with leases.hold([gpu(c) for c in cards.split(",")], purpose="a test", wait_s=float(wait_s)) as lease:
            note(f"+{lease.gpu.card}")
            print(f"held {lease.gpu.card}", flush=True)
            time.sleep(float(hold_s))
            note(f"-{lease.gpu.card}")
    except DeviceBusy as error:
        print(f"refused: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
