"""A receipt's decision repeated: the live one and the later one are the same, and an edited fact shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smith.records.base import Reason
from smith.records.candidate import Kind
from smith.records.compiled import TargetReport
from smith.records.facts import Asked
from smith.records.receipt import Arm, ProbeResult, Receipt, Verdict
from smith.records.results import Failure, Outcome, TestResult
from smith.records.task import Variant
from smith.score.speed import Block, summarise
from smith.validate.arms import Arms, Leg, Ran
from smith.validate.findings import Findings
from smith.validate.recorder import Recorder
from smith.verdict.recheck import recheck

IDS = tuple(f"tests/test_{file}.py::test_{n}" for file in ("a", "b", "guard", "extra") for n in range(3))
GUARD, EXTRA = "tests/test_guard.py", "tests/test_extra.py"
KERNEL = "lab/ops.py::_kernel"
INTERPRETER = "interpreter:gfx942"


@dataclass(frozen=True)
class Bundle:
    id: str = "lab__tiny-7"
    tree: str = "0" * 40


@dataclass
class World:
    """Every outcome that a test will have on a side, repeat after repeat, and what came of running them."""

    outcomes: Mapping[tuple[str, str], list[TestResult]]
    repeats: int = 3
    legs: list[Leg] = field(default_factory=list)

    def work(self, leg: Leg) -> Ran:
        self.legs.append(leg)
        found = {i: self.outcomes[leg.arm, i][(leg.repeat - 1) % len(self.outcomes[leg.arm, i])] for i in leg.ids}
        return Ran(found, 0.1, len(leg.alone))


def live(asked: Asked, world: World, device: str, *, probes: tuple[ProbeResult, ...] = (), timed: float = 0) -> Receipt:
    """Decide as validation does, while the outcomes come in."""
    record = Recorder(asked, lambda r: r.launches, lambda r: "name" if r.message == "wants a name" else None)
    found = Findings(probes=list(probes))
    ids = list(dict.fromkeys(i for _, i in world.outcomes))
    found.arms = Arms(world.work, record, repeats=world.repeats).run(ids)
    if found.decide(record.facts(), device).wants_timing and timed:
        pairs = [(100.0, 101.0), (99.0, 100.5), (100.0, 100.0), (101.0, 100.0), (99.5, 100.0)]
        blocks = [
            Block(({"case": timed * a}, {"case": timed * b}), {"case": c})
            for (a, b), c in zip(pairs, (100.0, 100.5, 99.5, 100.0, 100.2), strict=True)
        ]
        found.timing = summarise(blocks, method="m", device=device)
        found.decide(record.facts(), device)
    return found.receipt(Bundle(), device, repeats=world.repeats, sandbox="s", toolchain={}, not_proved=(), seconds=1.0)


def again(receipt: Receipt) -> list[str]:
    return list(map(str, recheck(Receipt.loads(receipt.dumps(), "r.json"))))


def one(test_id: str, outcome: Outcome, failure: Failure | None = None, **more: Any) -> TestResult:
    return TestResult(id=test_id, outcome=outcome, failure=failure, **more)


FAILURE = st.none() | st.sampled_from(Failure)
LAUNCHES = st.dictionaries(st.sampled_from([KERNEL, "lab/ops.py::_other"]), st.integers(1, 9), max_size=2)
MESSAGE = st.sampled_from(["", "wants a name", "RuntimeError: something\nmore", "é\udce9"])
OFTEN = st.sampled_from([Outcome.PASSED, Outcome.PASSED, Outcome.FAILED, *Outcome])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    found = {}
    for test_id in draw(st.lists(st.sampled_from(IDS), min_size=1, unique=True)):
        for side in ("reference", "nop"):
            found[side, test_id] = [
                one(test_id, outcome, None if outcome is Outcome.PASSED else draw(FAILURE), launches=draw(LAUNCHES),
                    message=draw(MESSAGE), seconds=draw(st.floats(0, 40)))
                for outcome in draw(st.lists(OFTEN, min_size=1, max_size=3))
            ]  # fmt: skip
    return World(found, draw(st.integers(1, 5)))


ASKED = st.builds(
    Asked,
    kind=st.sampled_from(Kind),
    variant=st.sampled_from(Variant),
    guards=st.sampled_from([(), (GUARD,)]),
    authored=st.sampled_from([(), (EXTRA,)]),
    budget_s=st.floats(1, 100),
    unsolved=st.booleans(),
    own_kernels=st.booleans(),
    workloads=st.booleans(),
)
PROBES = st.lists(
    st.builds(ProbeResult, name=st.just("p"), kind=st.sampled_from(["wrong", "alternative"]),
              as_expected=st.booleans(), detail=st.just("d")), max_size=2
).map(tuple)  # fmt: skip
DEVICES = st.sampled_from([INTERPRETER, "cpu"])
TIMED = st.sampled_from([0, 0.5, 1, 3])


@settings(max_examples=400)
@given(ASKED, worlds(), DEVICES, PROBES, TIMED)
def test_the_live_decision_and_the_repeated_one_agree(
    asked: Asked, world: World, device: str, probes: tuple[ProbeResult, ...], timed: float
) -> None:
    receipt = live(asked, world, device, probes=probes, timed=timed)
    assert again(receipt) == []
    data = receipt.dumps()
    assert Receipt.loads(data, "r.json") == receipt
    assert Receipt.loads(data, "r.json").dumps() == data


@settings(max_examples=300)
@given(ASKED, worlds(), DEVICES, st.data())
def test_an_outcome_that_is_edited_contradicts_the_receipt(
    asked: Asked, world: World, device: str, data: st.DataObject
) -> None:
    document = json.loads(live(asked, world, device).dumps())
    test_id = data.draw(st.sampled_from(sorted(document["facts"]["tests"])))
    facts = document["facts"]["tests"][test_id]
    side = data.draw(st.sampled_from([s for s in ("reference", "nop") if s in facts]))
    words = facts[side].split()
    place = data.draw(st.integers(0, len(words) - 1))
    passed = words[place] == "passed"
    words[place] = "failed:assertion" if passed else "passed"
    facts[side] = " ".join(words)
    assert recheck(Receipt.parse(document, "r.json"))


@settings(max_examples=200)
@given(ASKED, worlds(), DEVICES, st.data())
def test_a_judgement_that_is_edited_contradicts_its_facts(
    asked: Asked, world: World, device: str, data: st.DataObject
) -> None:
    receipt = live(asked, world, device)
    other = data.draw(st.sampled_from([v for v in Verdict if v is not receipt.verdict]))
    assert any(d.startswith("verdict: ") for d in again(receipt.model_copy(update={"verdict": other})))
    added = (*receipt.fail_to_pass, "tests/test_a.py::test_invented")
    assert any(d.startswith("fail_to_pass: ") for d in again(receipt.model_copy(update={"fail_to_pass": added})))
    fewer = receipt.model_copy(update={"arms": receipt.arms[:-1]})
    assert any("arms of" in d for d in again(fewer))


@settings(max_examples=200)
@given(ASKED, worlds())
def test_no_test_is_run_beyond_what_can_change_the_verdict(asked: Asked, world: World) -> None:
    """Stopping early is no other answer: with all repeats of all tests the verdict and its reason are the same."""
    receipt = live(asked, world, INTERPRETER)
    for side in ("reference", "nop"):
        seen = [len(getattr(t, side)) for t in receipt.facts.tests.values()] if receipt.facts else []
        assert max(seen, default=0) == sum(leg.arm == side for leg in world.legs)
    assert len(world.legs) <= 2 * world.repeats
    kept = {*receipt.fail_to_pass, *receipt.pass_to_pass}
    if receipt.fail_to_pass and receipt.facts:
        # What counts was run every time on both sides.
        assert all(len(receipt.facts.tests[i].nop) == world.repeats for i in kept)


A, B, C = IDS[:3]
FIX = Asked(kind=Kind.FIX, budget_s=30)


def world_of(repeats: int = 3, **sides: dict[str, str]) -> World:
    """``reference={id: "passed failed:assertion"}`` and the same for ``nop``; a test that passes launches a kernel."""
    from smith.records.facts import Seen

    found = {}
    for side, tests in sides.items():
        for test_id, words in tests.items():
            seen = [Seen.parse(word) for word in words.split()]
            found[side, test_id] = [one(test_id, *s, launches={KERNEL: 1} if s.passed else {}) for s in seen]
    return World(found, repeats)


def code(receipt: Receipt) -> str:
    return receipt.reasons[0].code if receipt.reasons else receipt.verdict.value


def test_a_test_that_changes_its_mind_is_left_out_with_its_rate() -> None:
    world = world_of(
        4,
        reference={A: "passed", B: "passed failed:assertion passed passed", C: "passed"},
        nop={A: "failed:assertion", B: "failed:assertion", C: "passed passed failed:assertion passed"},
    )
    receipt = live(FIX, world, INTERPRETER)
    assert receipt.verdict is Verdict.VALID and receipt.fail_to_pass == (A,)
    assert receipt.flaky == (B, C)
    assert (receipt.flaky_rates[B].reference, receipt.flaky_rates[B].nop) == ("3/4", "0/4")
    assert (receipt.flaky_rates[C].reference, receipt.flaky_rates[C].nop) == ("4/4", "3/4")


def test_when_every_telling_test_is_unstable_nothing_more_is_run() -> None:
    world = world_of(
        9, reference={A: "passed", B: "passed"}, nop={A: "failed:assertion passed", B: "passed"}
    )  # fmt: skip
    receipt = live(FIX, world, INTERPRETER)
    assert code(receipt) == "unstable" and len(world.legs) == 4
    assert receipt.flaky_rates[A].nop == "1/2"


def test_when_nothing_tells_nothing_is_repeated() -> None:
    world = world_of(9, reference={A: "passed"}, nop={A: "passed"})
    assert code(live(FIX, world, INTERPRETER)) == "no_fail_to_pass" and len(world.legs) == 2


def test_orders_and_seeds_differ_from_repeat_to_repeat_and_not_from_side_to_side() -> None:
    ids = [f"tests/test_a.py::test_{n}" for n in range(12)]
    world = world_of(4, reference=dict.fromkeys(ids, "passed"), nop=dict.fromkeys(ids, "failed:assertion"))
    receipt = live(FIX, world, INTERPRETER)
    by_side = {side: [leg for leg in world.legs if leg.arm == side] for side in ("reference", "nop")}
    assert [leg.ids for leg in by_side["reference"]] == [leg.ids for leg in by_side["nop"]]
    assert len({leg.ids for leg in by_side["nop"]}) == 4
    assert by_side["nop"][1].ids == tuple(reversed(ids))
    assert [(a.seed, a.order) for a in receipt.arms if a.arm == "nop"] == [
        (0, "selected"), (1, "reversed"), (2, "shuffled"), (3, "shuffled")
    ]  # fmt: skip


def test_ids_that_the_base_cannot_collect_are_each_tried_alone_on_it() -> None:
    ids = [f"tests/test_a.py::test_{n}" for n in range(5)]
    nop = dict.fromkeys(ids, "error:collection") | {ids[2]: "error:collection passed"}
    receipt = live(FIX, world := world_of(3, reference=dict.fromkeys(ids, "passed"), nop=nop), INTERPRETER)
    second = next(leg for leg in world.legs if (leg.arm, leg.repeat) == ("nop", 2))
    assert set(second.alone) == set(ids)
    assert receipt.fail_to_pass == tuple(i for i in ids if i != ids[2]) and receipt.flaky == (ids[2],)


@pytest.mark.parametrize(
    ("nop", "best", "rank", "weak"),
    [
        (("error:collection", "failed:assertion"), Failure.ASSERTION, 1, False),
        (("failed:kernel_error", "failed:interface"), Failure.KERNEL_ERROR, 2, False),
        (("failed:interface", "failed:import"), Failure.INTERFACE, 4, True),
        (("error:collection", "error:collection"), Failure.COLLECTION, 6, True),
        (("timeout:timeout", "error:collection"), Failure.COLLECTION, 6, True),
    ],
)
def test_how_the_base_fails_is_ranked(nop: tuple[str, str], best: Failure, rank: int, weak: bool) -> None:
    receipt = live(FIX, world_of(reference={A: "passed", B: "passed"}, nop=dict(zip((A, B), nop, strict=True))), "cpu")
    assert receipt.base_fails is not None
    assert (receipt.base_fails.failure, receipt.base_fails.rank, receipt.base_fails.weak) == (best, rank, weak)


@pytest.mark.parametrize("nop", ["failed:device_missing", "missing:harness", "skipped", "not_interpretable", "missing"])
def test_what_shows_no_fault_is_no_failure_on_the_base(nop: str) -> None:
    receipt = live(FIX, world_of(reference={A: "passed", B: "passed"}, nop={A: nop, B: "passed"}), INTERPRETER)
    assert receipt.fail_to_pass == () and A not in receipt.pass_to_pass


@pytest.mark.parametrize(
    ("reference", "verdict", "reason"),
    [
        ("failed:device_missing", Verdict.UNRESOLVABLE, "needs_device"),
        ("crashed:out_of_memory", Verdict.UNRESOLVABLE, "needs_device"),
        ("missing:harness", Verdict.UNRESOLVABLE, "environment"),
        ("skipped", Verdict.UNRESOLVABLE, "needs_device"),
        ("timeout:timeout", Verdict.UNRESOLVABLE, "timeout"),
        ("not_interpretable:other", Verdict.UNRESOLVABLE, "not_interpretable"),
        ("failed:assertion", Verdict.INVALID, "reference_fails"),
    ],
)
def test_a_reference_that_passes_nothing_says_why(reference: str, verdict: Verdict, reason: str) -> None:
    receipt = live(FIX, world_of(reference={A: reference}, nop={A: "passed"}), INTERPRETER)
    assert (receipt.verdict, code(receipt)) == (verdict, reason)


def test_why_nothing_fails_is_told() -> None:
    world = world_of(reference={A: "passed"}, nop={A: "passed"})
    assert live(FIX, world, INTERPRETER).nothing_fails == "invisible_here"
    assert "does not show on this device" in live(FIX, world, INTERPRETER).reasons[0].detail
    assert live(FIX, world, "cpu").nothing_fails == "not_counted"
    refactoring = Asked(kind=Kind.REFACTOR, budget_s=30)
    assert live(refactoring, world, INTERPRETER).nothing_fails == "not_a_fix"
    silent = World({key: [one(key[1], Outcome.PASSED)] for key in world.outcomes})
    assert live(FIX, silent, INTERPRETER).nothing_fails == "not_launched"


def test_inverted_sides_are_named_unless_they_are_only_unstable() -> None:
    sides: dict[str, dict[str, str]] = {
        "reference": {A: "failed:assertion", B: "passed"},
        "nop": {A: "passed", B: "passed"},
    }
    assert code(live(FIX, world_of(**sides), INTERPRETER)) == "inverted"
    sides["reference"][A] = "failed:assertion passed"
    assert code(live(FIX, world_of(**sides), INTERPRETER)) == "unstable"


def test_tests_without_a_launch_are_about_host_code() -> None:
    silent = World(
        {("reference", A): [one(A, Outcome.PASSED)], ("nop", A): [one(A, Outcome.FAILED, Failure.ASSERTION)]}
    )
    assert code(live(FIX, silent, INTERPRETER)) == "host_code_only"
    assert live(FIX, silent, "cpu").verdict is Verdict.VALID


def test_a_reason_that_no_rule_gives_is_found() -> None:
    valid = live(FIX, world_of(reference={A: "passed"}, nop={A: "failed:assertion"}), INTERPRETER)
    for verdict in (Verdict.INVALID, Verdict.VALID):
        forged = valid.model_copy(update={"verdict": verdict, "reasons": (Reason(code="ugly"),)})
        assert any(line.startswith("reasons: ") for line in again(forged))


def test_parts_that_contradict_each_other_are_found() -> None:
    valid = live(FIX, world_of(reference={A: "passed"}, nop={A: "failed:assertion"}), INTERPRETER)
    assert again(valid.model_copy(update={"sensitivity": 1.0}))[0].startswith("sensitivity: ")
    invented = TargetReport(verdict="compiled", launches=500, compiled=1)
    assert again(valid.model_copy(update={"targets": {"gfx942": invented}}))[0].startswith("target gfx942: ")


def test_figures_that_are_not_those_of_the_raw_samples_are_found() -> None:
    asked = Asked(kind=Kind.PERF, budget_s=30, workloads=True)
    receipt = live(asked, world_of(reference={A: "passed"}, nop={A: "passed"}), "cpu", timed=3)
    assert receipt.verdict is Verdict.VALID and receipt.timing is not None
    assert receipt.timing.cases[0].baseline_ns[:4] == (300.0, 303.0, 297.0, 301.5)
    better = receipt.timing.model_copy(update={"geomean": 4.0})
    assert any("timing geomean" in d for d in again(receipt.model_copy(update={"timing": better})))
    case = receipt.timing.cases[0]
    for update in (
        {"geomean": float("nan")},
        {"device": "cuda:sm_90"},
        {"cases": (case.model_copy(update={"low": 50.0, "high": 60.0}),)},
        {"cases": (case.model_copy(update={"candidate_ns": (5e-324,) * len(case.candidate_ns)}),)},
    ):
        assert again(receipt.model_copy(update={"timing": receipt.timing.model_copy(update=update)})), update
    case = receipt.timing.cases[0].model_copy(update={"baseline_ns": ()})
    bare = receipt.timing.model_copy(update={"cases": (case,)})
    assert any("no raw samples" in d for d in again(receipt.model_copy(update={"timing": bare})))


def test_a_receipt_without_facts_says_so() -> None:
    old = Receipt(task="lab__tiny-7", tree="0" * 40, device="cpu", verdict=Verdict.VALID, arms=(
        Arm(arm="nop", repeat=1, passed=0, failed=1, other=0, seconds=1.0),))  # fmt: skip
    with pytest.raises(ValueError, match="too few facts"):
        recheck(old)


def test_a_thousand_tests_stay_far_below_a_megabyte() -> None:
    ids = [
        f"tests/ops/test_layer_norm.py::test_layer_norm_backward[float32-shape{n}-True-None-cuda]" for n in range(1000)
    ]
    results = {("reference", i): [one(i, Outcome.PASSED, launches={f"lab/ops/layer_norm.py::_backward_kernel_{k}": 2
               for k in range(3)})] for i in ids}  # fmt: skip
    results |= {("nop", i): [one(i, Outcome.ERROR, Failure.COLLECTION)] for i in ids}
    receipt = live(FIX, World(results), INTERPRETER)
    assert len(receipt.fail_to_pass) == 1000
    assert len(receipt.dumps()) < 700_000
