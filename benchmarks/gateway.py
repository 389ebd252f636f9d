"""What the gateway adds to a call: ``make bench-gateway`` or ``python benchmarks/gateway.py [FOLDER]``.

Three processes, as in an evaluation: a model that answers at once, the gateway with its ledger, and a client, which
calls the model directly and through the gateway by turns. Told are the medians of what is added to a whole answer and
to the first byte of a stream, once with the ledger in FOLDER (default: the folder for temporary files), whose disk must
take every reservation before its call leaves, and once with the ledger in memory.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parent.parent))

from smith.gateway.paying import Payer
from smith.gateway.rates import Rates
from smith.gateway.record import Recorder, Redactor
from smith.gateway.server import Gateway
from smith.gateway.session import Session
from smith.gateway.upstream import Endpoint
from smith.ledger import Amounts, Ledger, Limits
from smith.ledger.prices import Prices
from smith.records.gateway import RateRow
from smith.records.prices import PriceRow
from smith.secret import Token
from tests.gateway.scripted_model import Say, serving

PAIRS, WARM = 150, 20
TOKEN, MODEL, SCOPE = "a-token-of-the-benchmark", "scripted", "eval/run/task/attempt-001"
PATH = "/v1/chat/completions"
REPLY = Say("word " * 40, read=5000, wrote=50, cached=4000)
PROMPT = "def kernel(x):\n    return x + 1\n" * 600
"""20 KB."""


def model() -> None:
    """Serve the model until standard input ends."""
    with serving(lambda asked: REPLY) as served:
        print(served.url, flush=True)
        sys.stdin.read()


def client(direct: str, sock: str) -> None:
    """Call by turns and print all times, in seconds."""
    body = {"model": MODEL, "max_tokens": 1000, "messages": [{"role": "user", "content": PROMPT}]}
    headers = {"authorization": f"Bearer {TOKEN}"}
    times: dict[str, list[float]] = {
        f"{way} {what}": [] for way in ("direct", "gateway") for what in ("whole", "first")
    }
    with (
        httpx.Client(base_url=direct, timeout=60) as one,
        httpx.Client(
            transport=httpx.HTTPTransport(uds=sock), base_url="http://g", headers=headers, timeout=60
        ) as other,
    ):
        for _ in range(PAIRS + WARM):
            for way, http in (("direct", one), ("gateway", other)):
                began = time.perf_counter()
                http.post(PATH, json=body).raise_for_status()
                times[f"{way} whole"].append(time.perf_counter() - began)
                began = time.perf_counter()
                with http.stream("POST", PATH, json={**body, "stream": True}) as answer:
                    parts = answer.iter_raw()
                    next(parts)
                    times[f"{way} first"].append(time.perf_counter() - began)
                    list(parts)
    print(json.dumps({name: some[WARM:] for name, some in times.items()}))


@contextlib.contextmanager
def gateway(folder: Path, url: str) -> Iterator[str]:
    """A gateway with all that an attempt's has: limits four deep, a record, an endpoint with a key."""
    token, key = Token.parse(TOKEN, "token"), Token.parse("a-key-of-the-benchmark", "key")
    redactor = Redactor([token, key])
    prices = Prices({MODEL: PriceRow(input_mtok=Decimal(1), output_mtok=Decimal(4))})
    with Ledger.open(folder / "ledger.db") as ledger:
        parts = SCOPE.split("/")
        for depth in range(1, len(parts) + 1):
            ledger.set_limit("/".join(parts[:depth]), Limits(usd_micros=10**12), who="benchmark", why="a limit")
        ledger.reserve(SCOPE, Amounts(), key=f"{SCOPE}/try-1")
        session = Session(
            token=token,
            endpoint=Endpoint(f"{url}/v1", "openai", key),
            payer=Payer(ledger, prices, SCOPE, MODEL, None, max_device_ms=0),
            recorder=Recorder(folder / "exchanges.jsonl", redactor),
            redactor=redactor,
            rates=Rates(folder / "rates", "scripted", RateRow()),
        )
        with Gateway.open(session, folder / "gateway.sock"):
            yield str(folder / "gateway.sock")


def measure(folder: Path, url: str) -> dict[str, list[float]]:
    """All times of one client."""
    with gateway(folder, url) as sock:
        done = subprocess.run(
            [sys.executable, __file__, "--client", url, sock], capture_output=True, text=True, check=True
        )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def show(title: str, times: dict[str, list[float]]) -> None:
    """The medians, in milliseconds, and what is added in the middle pair."""
    for what, words in (("whole", "a call"), ("first", "first byte of a stream")):
        direct, through = times[f"direct {what}"], times[f"gateway {what}"]
        added = sorted((b - a) * 1000 for a, b in zip(direct, through, strict=True))
        low, middle, high = (added[round(q * (len(added) - 1))] for q in (0.1, 0.5, 0.9))
        print(
            f"{title:18} {words:24} direct {statistics.median(direct) * 1000:6.2f} ms   "
            f"through {statistics.median(through) * 1000:6.2f} ms   added {middle:6.2f} ms ({low:.2f} to {high:.2f})"
        )


def main(places: dict[str, Path]) -> None:
    """Measure with the ledger in each of these folders."""
    with subprocess.Popen(
        [sys.executable, __file__, "--model"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout is not None and served.stdin is not None
        url = served.stdout.readline().strip()
        for title, place in places.items():
            with tempfile.TemporaryDirectory(dir=place) as folder:
                show(title, measure(Path(folder), url))
        served.stdin.close()


if __name__ == "__main__":
    arguments: list[Any] = sys.argv[1:]
    if arguments[:1] == ["--model"]:
        model()
    elif arguments[:1] == ["--client"]:
        client(*arguments[1:])
    else:
        disk = Path(arguments[0] if arguments else tempfile.gettempdir())
        memory = {"ledger in memory": Path("/dev/shm")} if Path("/dev/shm").is_dir() else {}
        main({"ledger on disk": disk, **memory})
