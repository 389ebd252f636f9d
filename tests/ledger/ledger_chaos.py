"""Writers on one ledger, killed with SIGKILL at random points: ``python ledger_chaos.py FOLDER SECONDS SEED``.

Each writer appends to a log of its own what it is about to do and, after the ledger has answered, that it was done. One
that takes the place of another first ends what it finds open, as a resumed run would. Prints how often it killed; the
logs and the ledger are left for the test to compare.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from smith.errors import BudgetRefused, Stale
from smith.ledger import Amounts, Ledger, Limits, State

Say = Callable[..., None]
WRITERS, FIRST_LIMIT, STEP = 4, 20_000, 5_000


def main(folder: Path, seconds: float, seed: int) -> None:
    dice = random.Random(seed)
    with Ledger.open(folder / "ledger.db") as ledger:
        ledger.set_limit("run", Limits(usd_micros=FIRST_LIMIT), who="chaos", why="start")
    running = [start(folder, number, dice) for number in range(WRITERS)]
    kills, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(dice.uniform(0, 0.08))
        victims = dice.sample(range(WRITERS), dice.choice((1, 1, 1, WRITERS)))
        for number in victims:
            os.kill(running[number], signal.SIGKILL)
        for number in victims:
            gone(running[number])
            kills += 1
            running[number] = start(folder, number, dice)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        gone(pid)
    print(json.dumps({"kills": kills + WRITERS}))


def gone(pid: int) -> None:
    """Wait for a killed writer, which must not have ended by itself before."""
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status), f"a writer ended with status {os.waitstatus_to_exitcode(status)}"


def start(folder: Path, number: int, dice: random.Random) -> int:
    """A new writer with the log of its number. Nothing of SQLite is open here, so nothing is shared with it."""
    seed = dice.random()
    pid = os.fork()
    if pid == 0:
        try:
            write(folder, number, random.Random(seed))
        except BaseException:
            traceback.print_exc()
        os._exit(70)
    return pid


def write(folder: Path, number: int, dice: random.Random) -> None:
    path = folder / f"writer-{number}-{time.monotonic_ns()}.log"
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def say(*words: object) -> None:
        os.write(log, (json.dumps(words) + "\n").encode())

    with Ledger.open(folder / "ledger.db") as ledger:
        for hold in ledger.holds("run", [State.OPEN])[:3]:
            # Somebody left it, or is at it: both may settle it, with the same amounts, and it counts once.
            finish(ledger, hold.key, hold.ceiling, say)
        for count in range(10**9):
            key = f"{path.stem}-{count}"
            ceiling = Amounts(usd_micros=dice.randint(1, 900), output_tokens=dice.randint(0, 9))
            scope = f"run/task-{dice.randint(0, 3)}/attempt-{dice.randint(0, 1)}"
            say("reserving", key, scope, ceiling.model_dump())
            try:
                ledger.reserve(scope, ceiling, key=key)
            except BudgetRefused as refused:
                say("refused", key)
                more(ledger, refused, say)
                continue
            say("reserved", key)
            finish(ledger, key, ceiling, say)


def finish(ledger: Ledger, key: str, ceiling: Amounts, say: Say) -> None:
    """End a hold in the one way that its key tells, so that whoever does it again does the same."""
    way = random.Random(key).random()
    if way < 0.1:
        say("ending", key, "released")
        ledger.release(key)
    elif way < 0.15:
        say("ending", key, "uncertain")
        ledger.mark_uncertain(key, "chaos")
    else:
        used = Amounts(usd_micros=int(ceiling.usd_micros * way), output_tokens=ceiling.output_tokens)
        say("ending", key, "settled")
        ledger.settle(key, used, evidence={"key": key})
    say("ended", key)


def more(ledger: Ledger, refused: BudgetRefused, say: Say) -> None:
    """Raise the limit: of all writers that see the same one, only one may."""
    limit = ledger.balance("run").limit
    assert limit.usd_micros is not None
    say("raising", limit.usd_micros)
    try:
        higher = Limits(usd_micros=limit.usd_micros + STEP)
        ledger.raise_limit("run", limit, higher, who="chaos", why=f"{refused.left} left")
    except Stale:
        say("stale", limit.usd_micros)
        return
    say("raised", limit.usd_micros)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
