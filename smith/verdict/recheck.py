"""A receipt's decision repeated from the facts in it: does it say what follows from what was seen?

That proves nothing about whether the facts are true; running the tests again does. It finds receipts that were edited,
and rules that have changed since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from smith.records.facts import Facts, Seen
from smith.records.receipt import Arm, Receipt, Timing
from smith.score.speed import again
from smith.verdict.decide import Decision, decide

TOO_FEW = "holds too few facts to be checked again (made by an earlier version): validate the task again"


@dataclass(frozen=True)
class Difference:
    """Something that a receipt says and its facts do not."""

    what: str
    recorded: str
    repeated: str

    def __str__(self) -> str:
        return f"{self.what}: the receipt says {self.recorded}, its facts say {self.repeated}"


def recheck(receipt: Receipt) -> list[Difference]:
    """How a receipt differs from what follows from its facts; none where it agrees.

    Raises :class:`ValueError` with :data:`TOO_FEW` where it holds no facts.
    """
    facts = receipt.facts
    if facts is None:
        raise ValueError(TOO_FEW)
    decision = decide(facts, receipt.device, timing=receipt.timing, probes=receipt.probes)
    return [
        *_judgement(receipt, decision),
        *_findings(receipt, decision),
        *_arms(receipt.arms, facts),
        *(_timing(receipt.timing) if receipt.timing is not None else ()),
        *_apart(receipt),
    ]


def _apart(receipt: Receipt) -> Iterator[Difference]:
    """Parts of a receipt that must not contradict each other."""
    if receipt.timing is not None and receipt.timing.device != receipt.device:
        yield Difference("device", receipt.device, f"timed on {receipt.timing.device}")
    measured = receipt.planted.share if receipt.planted is not None else None
    if receipt.sensitivity != measured:
        yield Difference("sensitivity", str(receipt.sensitivity), str(measured))
    for target, report in receipt.targets.items():
        whole = report.compiled == report.launches and report.base_compiled <= report.base_launches
        if report.compiled > report.launches or (report.verdict == "compiled" and not whole):
            yield Difference(f"target {target}", report.verdict, f"{report.compiled} of {report.launches} compiled")


def _judgement(receipt: Receipt, decision: Decision) -> Iterator[Difference]:
    if receipt.verdict is not decision.verdict:
        yield Difference("verdict", receipt.verdict.value, decision.verdict.value)
    if receipt.reasons != decision.reasons:
        yield Difference("reasons", _listed(map(str, receipt.reasons)), _listed(map(str, decision.reasons)))


def _findings(receipt: Receipt, decision: Decision) -> Iterator[Difference]:
    for what, recorded, repeated in (
        ("fail_to_pass", receipt.fail_to_pass, decision.fail_to_pass),
        ("pass_to_pass", receipt.pass_to_pass, decision.pass_to_pass),
        ("flaky", receipt.flaky, decision.flaky),
    ):
        if recorded != repeated:
            yield _of_ids(what, recorded, repeated)
    for name, mine, derived in (
        ("flaky_rates", receipt.flaky_rates, decision.rates),
        ("base_failures", receipt.base_failures, decision.base_failures),
        ("launches", receipt.launches, decision.launches),
    ):
        keys = [k for k in {**mine, **derived} if mine.get(k) != derived.get(k)]
        if keys:
            key = keys[0]
            yield Difference(f"{name} of {key}", str(mine.get(key, "nothing")), str(derived.get(key, "nothing")))
    if receipt.base_fails != decision.base_fails:
        yield Difference("base_fails", str(receipt.base_fails), str(decision.base_fails))
    if receipt.nothing_fails is not decision.nothing_fails:
        yield Difference("nothing_fails", str(receipt.nothing_fails), str(decision.nothing_fails))


def _of_ids(what: str, recorded: tuple[str, ...], repeated: tuple[str, ...]) -> Difference:
    more = [i for i in recorded if i not in set(repeated)]
    less = [i for i in repeated if i not in set(recorded)]
    if not more and not less:
        return Difference(what, f"{len(recorded)} ids in one order", "another order")
    return Difference(what, f"also {_listed(more)}" if more else "fewer", f"also {_listed(less)}" if less else "fewer")


def _listed(words: object) -> str:
    found = list(words)  # type: ignore[call-overload]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return ", ".join(found[:3]) + more if found else "nothing"


def _arms(arms: tuple[Arm, ...], facts: Facts) -> Iterator[Difference]:
    """The counts of every arm are those of its tests, and every outcome belongs to an arm."""
    for side in ("reference", "nop"):
        mine = [arm for arm in arms if arm.arm == side]
        seen = [t.reference if side == "reference" else t.nop for t in facts.tests.values()]
        if [arm.repeat for arm in mine] != list(range(1, len(mine) + 1)):
            yield Difference(f"arms of {side}", "repeats " + ", ".join(str(a.repeat) for a in mine), "no such order")
        longest = max(map(len, seen), default=0)
        if longest != len(mine):
            yield Difference(f"arms of {side}", f"{len(mine)} runs", f"{longest}")
        for arm in mine:
            counts = _counts([outcomes[arm.repeat - 1] for outcomes in seen if 0 < arm.repeat <= len(outcomes)])
            if (arm.passed, arm.failed, arm.other) != counts:
                words = "{} passed, {} failed, {} other"
                recorded = words.format(arm.passed, arm.failed, arm.other)
                yield Difference(f"{side} {arm.repeat}", recorded, words.format(*counts))


def _counts(seen: list[Seen]) -> tuple[int, int, int]:
    found = Counter(Arm.column(one.outcome) for one in seen)
    return found["passed"], found["failed"], found["other"]


SAME = 0.005
"""Figures that differ by less, relatively, are the same: another release of a library may draw other resamples."""


def _timing(timing: Timing) -> Iterator[Difference]:
    """The figures are those of the raw samples."""
    repeated = again(timing)
    if repeated is None:
        yield Difference("timing", "figures", "nothing: there are no raw samples that give any")
        return
    mine, derived = ({"geomean": t.geomean, "low": t.low, "high": t.high, "worst": t.worst, "noise_low": t.noise_low,
                      "noise_high": t.noise_high,
                      **{f"{what} of {c.case}": value for c in t.cases
                         for what, value in (("ratio", c.ratio), ("low", c.low), ("high", c.high))}}
                     for t in (timing, repeated))  # fmt: skip
    for name, value in mine.items():
        # Written so that what is no number differs.
        if not abs(value - derived[name]) <= SAME * derived[name]:
            yield Difference(f"timing {name}", str(value), str(derived[name]))
    if timing.rounds != repeated.rounds:
        yield Difference("timing rounds", str(timing.rounds), str(repeated.rounds))
    if timing.answer is not repeated.answer:
        yield Difference("timing answer", str(timing.answer), str(repeated.answer))
