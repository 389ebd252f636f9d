"""Runs of both arms side by side: never more at a time than slots, and nothing else in a receipt than one by one."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_tasks import FIXED, new_store, write_task

from smith.environment.layers import build
from smith.freeze.bundle import Bundle, Store
from smith.grade.trial import Bench
from smith.parallel import Slots, each
from smith.records.candidate import Kind
from smith.records.facts import Asked
from smith.records.receipt import Receipt, Verdict
from smith.records.results import Failure, Outcome, TestResult
from smith.sandbox import make
from smith.sandbox.base import Command, Ended, Sandbox
from smith.validate.ahead import Ahead
from smith.validate.arms import Arms, Leg, Ran, timeless
from smith.validate.recorder import Recorder
from smith.validate.validate import Validation

IDS = tuple(f"tests/test_{file}.py::test_{n}" for file in ("a", "b", "guard") for n in range(3))
LATER = st.sampled_from([Outcome.PASSED] * 5 + [Outcome.FAILED, Outcome.MISSING, Outcome.TIMEOUT])
FIRST = st.sampled_from([Outcome.PASSED, Outcome.PASSED, Outcome.FAILED, *Outcome])


@dataclass
class World:
    """Outcomes that hang on all that a leg says: one that was begun on other ids would give itself away."""

    first: dict[tuple[str, str], Outcome]
    later: list[Outcome]
    seconds: float
    repeats: int
    legs: list[Leg] = field(default_factory=list)

    def work(self, leg: Leg) -> Ran:
        self.legs.append(leg)
        return Ran({i: self.result(leg, i) for i in leg.ids}, 0.1, len(leg.alone))

    def result(self, leg: Leg, test: str) -> TestResult:
        outcome = self.first[leg.arm, test]
        if leg.repeat > 1:
            drawn = hashlib.sha256(repr((leg.arm, leg.repeat, leg.ids, leg.alone, test)).encode()).digest()[0]
            if self.later[drawn % len(self.later)] is not Outcome.PASSED:
                outcome = self.later[drawn % len(self.later)]
        failure = None if outcome is Outcome.PASSED else Failure.ASSERTION
        return TestResult(id=test, outcome=outcome, failure=failure, seconds=self.seconds)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, unique=True))
    first = {(side, i): draw(FIRST) for i in ids for side in ("reference", "nop")}
    later = draw(st.lists(LATER, min_size=1, max_size=8))
    return World(first, later, draw(st.sampled_from([0.1, 4.0, 30.0])), draw(st.integers(1, 5)))


def facts_of(world: World, asked: Asked, slots: Slots | None) -> tuple[object, ...]:
    record = Recorder(asked, lambda r: r.launches, lambda r: None)
    world.legs.clear()
    arms = Arms(world.work, record, repeats=world.repeats, slots=slots)
    runs = arms.run(list(dict.fromkeys(i for _, i in world.first)))
    return runs, record.facts(), arms.captured


@settings(max_examples=200, deadline=None)
@given(worlds(), st.sampled_from(Kind), st.integers(1, 6))
def test_what_is_recorded_does_not_depend_on_slots(world: World, kind: Kind, count: int) -> None:
    asked = Asked(kind=kind, guards=("tests/test_guard.py",), budget_s=20.0)
    slots = Slots(count)
    assert facts_of(world, asked, None) == facts_of(world, asked, slots)
    assert all(slots.take() for _ in range(count)), "a slot was not given back"


@given(st.integers(2, 5))
def test_with_nothing_unstable_no_leg_is_run_in_vain(count: int) -> None:
    first = {
        (side, i): Outcome.PASSED if side == "reference" else Outcome.FAILED
        for i in IDS
        for side in ("reference", "nop")
    }
    world = World(first, [Outcome.PASSED], 0.1, 3)
    facts_of(world, Asked(kind=Kind.FIX, budget_s=60.0), Slots(count))
    assert len(world.legs) == 6


@pytest.mark.parametrize(
    ("outcomes", "seconds", "free"),
    [([Outcome.PASSED], 5.0, True), ([Outcome.PASSED], 11.0, False), ([Outcome.PASSED, Outcome.MISSING], 0.0, False),
     ([Outcome.TIMEOUT], 0.0, False), ([Outcome.FAILED, Outcome.ERROR], 1.0, True)],
)  # fmt: skip
def test_where_time_decides_a_first_run_is_not_shared(outcomes: list[Outcome], seconds: float, free: bool) -> None:
    results = [TestResult(id=f"t::{n}", outcome=one, seconds=seconds) for n, one in enumerate(outcomes)]
    assert timeless(results, 20.0) is free


def test_where_time_decides_the_reference_is_run_again_by_itself() -> None:
    first = {(side, i): Outcome.PASSED for i in IDS for side in ("reference", "nop")}
    world = World(first, [Outcome.PASSED], 30.0, 1)
    runs, _, _ = facts_of(world, Asked(kind=Kind.PERF, budget_s=60.0), Slots(2))
    assert isinstance(runs, list) and len(runs) == 2
    assert [leg.arm for leg in world.legs].count("reference") == 2
    assert [leg.arm for leg in world.legs].count("nop") == 1


def test_what_a_leg_raises_comes_where_it_is_asked_for_and_what_still_runs_is_waited_for() -> None:
    ended = threading.Event()

    def work(job: str) -> str:
        if job == "bad":
            raise ValueError(job)
        if job == "slow":
            time.sleep(0.2)
            ended.set()
        return job

    slots = Slots(3)
    with pytest.raises(ValueError, match="bad"), Ahead(work, slots) as ahead:
        ahead.begin(["mine", "bad", "slow"])
        assert ahead.begun("bad") and ahead.begun("slow") and not ahead.begun("mine")
        assert ahead.do("mine") == "mine"
        ahead.do("bad")
    assert ended.is_set()
    assert all(slots.take() for _ in range(3))


# -- real sandboxes --------------------------------------------------------------------------------------------------

SLOW = """
import time
import pytest
from tiny.scale import scale

@pytest.mark.parametrize("n", range(1, 5))
def test_scale(n):
    time.sleep(0.2)
    assert scale(n) == 2 * n

def test_zero(): assert scale(0) == 0
def test_hashes(): assert hash("grid") % 2 == 0 and scale(3) == 6, "passes with the hash seed 0 only"
"""


class Counted:
    """A real sandbox that counts how many commands run at a time."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner, self._lock, self._now, self.most = inner, threading.Lock(), 0, 0
        self.name, self.remaps = inner.name, inner.remaps

    def check(self) -> str | None:
        return self._inner.check()

    def run(self, command: Command) -> Ended:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            return self._inner.run(command)
        finally:
            with self._lock:
                self._now -= 1


def validated(store: Store, bundle: Bundle, box: Sandbox, slots: Slots) -> Receipt:
    """As ``smith validate`` does it: a slot for the task, and for its runs those that are free."""
    with slots.held():
        return Validation(
            bundle,
            Bench(store, box, "cpu"),
            repeats=3,
            builder=lambda choice: build(choice, store.layout.environments),
            slots=slots,
        ).receipt()


def timeless_bytes(receipt: Receipt) -> bytes:
    """The receipt without what a clock said."""
    assert receipt.facts is not None
    tests = {i: t.model_copy(update={"seconds": 0.0}) for i, t in receipt.facts.tests.items()}
    arms = tuple(arm.model_copy(update={"seconds": 0.0}) for arm in receipt.arms)
    facts = receipt.facts.model_copy(update={"tests": tests})
    return receipt.model_copy(update={"seconds": 0.0, "arms": arms, "facts": facts}).dumps()


@pytest.mark.timeout(300)
def test_a_receipt_is_the_same_with_one_job_and_with_several(tmp_path: Path, sandbox_name: str) -> None:
    store = new_store(tmp_path / "data")
    bundle = write_task(store, {"tests/test_scale.py": SLOW}, fixed=FIXED)
    found = []
    for jobs in (1, 3):
        box = Counted(make(sandbox_name))
        receipt = validated(store, bundle, box, Slots(jobs))
        assert receipt.verdict is Verdict.VALID and len(receipt.fail_to_pass) == 4
        assert [i.rpartition("::")[2] for i in receipt.flaky] == ["test_hashes"]
        assert box.most <= jobs and (box.most > 1) is (jobs > 1)
        found.append(timeless_bytes(receipt))
    assert found[0] == found[1]


@pytest.mark.timeout(300)
def test_tasks_and_their_runs_share_the_slots(tmp_path: Path, sandbox_name: str) -> None:
    stores = [new_store(tmp_path / f"data{n}") for n in range(2)]
    tasks = [(store, write_task(store, {"tests/test_scale.py": SLOW}, fixed=FIXED)) for store in stores]
    box, slots = Counted(make(sandbox_name)), Slots(2)
    receipts = dict(each(lambda n: validated(*tasks[n], box, slots), range(2), 2))
    assert box.most == 2
    assert len({timeless_bytes(receipt) for receipt in receipts.values()}) == 1
