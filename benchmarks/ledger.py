"""What a paid call costs in the ledger: ``make bench-ledger`` or ``python benchmarks/ledger.py [FOLDER]``.

FOLDER is where the files are made (default: the folder for temporary files); the disk beneath it matters most. A call
is one ``reserve`` and one ``settle`` in a scope four deep, every level limited. It is compared in pairs, in one run,
with the least that SQLite could do: two transactions, ``BEGIN IMMEDIATE``, one row, ``COMMIT``, flushed alike. What the
processor does alone is taken in memory and in processor time, so that a busy machine does not blur it.
"""

from __future__ import annotations

import itertools
import multiprocessing
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from smith.ledger import Amounts, Ledger, Limits

SCOPE, ROUNDS, CALLS, PROCESSES = "eval/run/task/attempt-001", 7, 60, 4
ASKED, USED = Amounts(usd_micros=900, input_tokens=4000, output_tokens=800), Amounts(usd_micros=700, output_tokens=500)
EVIDENCE = {"response": "resp_0123456789", "usage": {"input_tokens": 4000, "output_tokens": 500}}


def call(ledger: Ledger, key: str) -> None:
    """One paid call."""
    hold = ledger.reserve(SCOPE, ASKED, key=key)
    ledger.settle(hold, USED, evidence=EVIDENCE)


def new(path: Path) -> None:
    """A ledger with a limit at every level."""
    with Ledger.open(path) as ledger:
        parts = SCOPE.split("/")
        for depth in range(1, len(parts) + 1):
            limit = Limits(usd_micros=10**12, output_tokens=10**12)
            ledger.set_limit("/".join(parts[:depth]), limit, who="benchmark", why="a limit to look at")


def bare(db: sqlite3.Connection) -> None:
    """Two transactions of one row; the first flushed, as a reservation is."""
    for level in ("FULL", "NORMAL"):
        db.execute(f"PRAGMA synchronous={level}")
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO rows (text) VALUES (?)", ["x" * 300])
        db.execute("COMMIT")


def milliseconds(work: Callable[[], object], times: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Milliseconds of one of so many, by this clock."""
    began = clock()
    for _ in range(times):
        work()
    return (clock() - began) * 1000 / times


def show(title: str, rounds: list[tuple[float, float]], versus: str) -> None:
    """The median ratio of paired rounds."""
    ratios = sorted(a / b for a, b in rounds)
    took, least = (statistics.median(column) for column in zip(*rounds, strict=True))
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}; {took:.2f} ms and {least:.2f} ms"
    print(f"{title:44} {statistics.median(ratios):6.2f}x of {versus} ({spread})")


def pairs(folder: Path, title: str, clock: Callable[[], float]) -> None:
    """A call against bare transactions, in paired rounds that take turns."""
    new(folder / "ledger.db")
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    count = itertools.count()
    with Ledger.open(folder / "ledger.db") as ledger:
        rounds = []
        for _ in range(ROUNDS):
            theirs = milliseconds(lambda: bare(db), CALLS, clock)
            rounds.append((milliseconds(lambda: call(ledger, f"k{next(count)}"), CALLS, clock), theirs))
    db.close()
    show(title, rounds, "two bare transactions")


def growth(folder: Path) -> None:
    """A call in a ledger with a history against one in a young ledger, and the proof of that history."""
    new(folder / "old.db")
    new(folder / "young.db")
    count = itertools.count()
    with Ledger.open(folder / "old.db") as old, Ledger.open(folder / "young.db") as young:
        milliseconds(lambda: call(old, f"k{next(count)}"), 10_000)
        rounds = []
        for _ in range(ROUNDS):
            ours = milliseconds(lambda: call(old, f"k{next(count)}"), CALLS, time.process_time)
            rounds.append((ours, milliseconds(lambda: call(young, f"k{next(count)}"), CALLS, time.process_time)))
        entries = old.head()[0]
        took = milliseconds(old.check, 1, time.process_time)
    show(f"a call after {entries:,} entries", rounds, "one in a young ledger")
    print(f"{'proving them':44} {entries / took * 1000:6,.0f} entries a second")


def work(path: Path, name: str) -> None:
    """One of several processes."""
    with Ledger.open(path) as ledger:
        for number in range(CALLS * 3):
            call(ledger, f"{name}-{number}")


def together(folder: Path) -> None:
    """Several processes at one file."""
    new(folder / "shared.db")
    alone = milliseconds(lambda: work(folder / "shared.db", "alone"), 1) / CALLS / 3
    spawn = multiprocessing.get_context("spawn")
    children = [spawn.Process(target=work, args=(folder / "shared.db", f"p{n}")) for n in range(PROCESSES)]
    with Ledger.open(folder / "shared.db") as ledger:
        before = ledger.head()[0]
        for child in children:
            child.start()
        while ledger.head()[0] < before + PROCESSES * 8:  # all have started by and by; count what follows
            time.sleep(0.01)
        since, began = ledger.head()[0], time.perf_counter()
        for child in children:
            child.join()
        took = (time.perf_counter() - began) * 1000
        done = (ledger.head()[0] - since) / 2
        assert ledger.check() == []
        assert all(child.exitcode == 0 for child in children)
    title = f"{PROCESSES} processes at one file"
    print(f"{title:44} {done / took * 1000:6,.0f} calls a second ({1000 / alone:,.0f} by one)")


def main(argv: list[str]) -> int:
    """All of them, on FOLDER's disk and, where there is one, in memory."""
    with tempfile.TemporaryDirectory(dir=argv[0] if argv else None) as place:
        pairs(Path(place), "reserve and settle, on disk", time.perf_counter)
        together(Path(place))
    memory = Path("/dev/shm")
    if memory.is_dir():
        with tempfile.TemporaryDirectory(dir=memory) as place:
            pairs(Path(place), "reserve and settle, processor time", time.process_time)
            growth(Path(place))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
