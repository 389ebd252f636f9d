"""What a large knowledge base costs: ``make bench-knowledge [CARDS=10000]``.

Cards and their evidence are made up (nothing was run), on the sample's bundles and receipts. Printed are the seconds
that the check takes, those that building and refreshing the index take, and the milliseconds of a search, over several
words and filters. Figures of the search are of the query on an index that is up to date; looking at all files, as each
command does first, is told apart.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parents[1]
sys.path[:0] = [str(HERE / "tests" / "knowledge"), str(HERE)]

from knowledge_worlds import sample_data  # noqa: E402
from run import seconds  # noqa: E402

from smith.freeze.bundle import Store  # noqa: E402
from smith.freeze.panels import load_panel, load_receipt  # noqa: E402
from smith.knowledge.base import Known, Sealed  # noqa: E402
from smith.knowledge.cards import SECTIONS, CardFile, body_of, dumps, known_operators, with_identifier  # noqa: E402
from smith.knowledge.check import check  # noqa: E402
from smith.knowledge.effects import effects_of, outcome  # noqa: E402
from smith.knowledge.index import Wanted, open_index  # noqa: E402
from smith.records.card import Aim, AppliesTo, Card  # noqa: E402
from smith.records.grade import Count, GradeVerdict  # noqa: E402
from smith.records.receipt import Answer  # noqa: E402
from smith.records.sealed import Evidence, Speed, Use  # noqa: E402

# ruff: noqa: SIM905
VERBS = "widen split fuse hoist reorder stage pack align mask prefetch tile batch swizzle unroll cast guard".split()
NOUNS = "loads stores rows columns tiles sums offsets blocks warps lanes pages scales heads keys states grids".split()
WAYS = "once twice early late together apart in-order by-rows by-columns per-block per-warp in-registers".split()
_PLAIN = [*VERBS, *NOUNS, *"before after while each program cache register bank conflict vector".split()]
_STARTS = [a + b for a in ("ta", "re", "mo", "ki", "lu") for b in ("ran", "bel", "dos", "vin")]
_MADE = [start + end for start in _STARTS for end in "aeioustrnlmpd"]
WORDS = [word for pair in zip(_PLAIN, _MADE, strict=False) for word in pair] + _MADE[len(_PLAIN) :]
WEIGHTS = [1 / rank for rank in range(1, len(WORDS) + 1)]
"""As often as words are in a language: by Zipf's law."""


def main() -> int:
    """Make cards up, then print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=10_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        store = sample_data(Path(place) / "data")
        made = write(store, asked.cards)
        print(f"{made} cards with their evidence, made up")
        began, processor = time.perf_counter(), time.process_time()
        found = check(store)
        took, used = time.perf_counter() - began, time.process_time() - processor
        print(f"check: {took:.2f} s, {used:.2f} s of one processor; {len(found.findings)} findings")
        for finding in found.findings[:3]:
            print(f"  {finding}")
        with open_index(store.layout) as index:
            print(f"index: built in {seconds(lambda: _rebuild(store)):.2f} s")
            index.refresh()
            print(f"index: nothing new in {1000 * min(seconds(index.refresh) for _ in range(5)):.1f} ms")
            times = sorted(1000 * seconds(lambda one=one: index.search(*one)) for one in _searches() for _ in range(5))
            print(f"search: median {times[len(times) // 2]:.1f} ms, slowest {times[-1]:.1f} ms of {len(times)}")
    return 0


def _searches() -> Iterator[tuple[str, Wanted, int]]:
    for words in ("swizzle tiles", "bank conflict", "mask", "fuse rows in-registers", "nothing-like-this loads"):
        yield words, Wanted(), 10
        yield words, Wanted(operator="gemm", language="triton", device="rocm"), 10
    yield "", Wanted(language="hip"), 10


def _rebuild(store: Store) -> None:
    store.layout.knowledge_index.unlink(missing_ok=True)
    with open_index(store.layout):
        pass


def write(store: Store, count: int) -> int:
    """Write ``count`` cards, each of a lever of its own, and evidence of one win at a task of the sample."""
    chance = random.Random(0)
    pin = next(p for p in load_panel(store.layout, "sample").tasks if p.id.endswith("-46"))
    receipt = load_receipt(store.layout.receipt(pin.id, pin.tree, "cpu"), pin.id, pin.tree)
    operators = sorted(known_operators())
    levers = [f"{verb}-{noun}-{way}" for verb in VERBS for noun in NOUNS for way in WAYS]
    chance.shuffle(levers)
    for number in range(count):
        lever = levers[number % len(levers)] + (f"-{number // len(levers)}" if number >= len(levers) else "")
        where = AppliesTo(
            operator=chance.choice(operators),
            languages=(chance.choice(("triton", "hip", "cuda", "native")),),
            devices=tuple(sorted({"cpu", chance.choice(("cpu", "rocm", "cuda"))})),
        )
        title = f"{where.operator} with {lever.replace('-', ' ')}"
        card = with_identifier(Card(id="0" * 12, title=title, aim=Aim.SPEED, lever=lever, applies_to=where))
        body = body_of({name: f"- {' '.join(chance.choices(WORDS, WEIGHTS, k=45))}." for name in SECTIONS})
        known = _measured(
            CardFile(f"knowledge/cards/{where.operator}/card-{number}.md", card, body), pin, receipt, chance
        )
        path = store.layout.root / known.file.where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dumps(card.model_copy(update={"figures": known.figures()}), body))
        store.layout.evidence.mkdir(parents=True, exist_ok=True)
        (store.layout.evidence / f"{known.evidence[0].digest}.json").write_bytes(known.evidence[0].evidence.dumps())
    return count


def _measured(file: CardFile, pin, receipt, chance: random.Random) -> Known:  # type: ignore[no-untyped-def]
    digest = hashlib.sha256(file.card.id.encode()).hexdigest()
    ratio = round(chance.uniform(1.2, 4), 4)
    speed = Speed(
        ratio=ratio, low=ratio * 0.95, high=ratio * 1.05, worst=ratio, rounds=5, noise_low=0.99, noise_high=1.01,
        answer=Answer.FASTER,
    )  # fmt: skip
    tests = len(receipt.receipt.pass_to_pass)
    use = Use(
        task=pin.id, tree=pin.tree, attempt=1, device="cpu", verdict=GradeVerdict.SOLVED,
        outcome=outcome(GradeVerdict.SOLVED, speed, None), fail_to_pass=Count(passed=0, total=0),
        pass_to_pass=Count(passed=tests, total=tests), speed=speed, patch_sha256=digest, grade_sha256=digest,
        attempt_sha256=digest, receipt=receipt.blob,
    )  # fmt: skip
    evidence = Evidence(
        card=file.card.id, founding=True, run=digest, panel="sample", agent="made-up", uses=(use,),
        effects=effects_of((use,)),
    )  # fmt: skip
    return Known(file, (Sealed(hashlib.sha256(evidence.dumps()).hexdigest(), evidence),), {})


if __name__ == "__main__":
    raise SystemExit(main())
