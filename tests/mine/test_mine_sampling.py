"""Samples have the size that was asked for, depend on seed and content alone, and never cross a held-out split."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.errors import BadInput
from smith.mine.sampling import Entry, allot, choose, size_class, split
from smith.records.candidate import Candidate, Kind
from smith.records.pull_request import Evidence, MergeForm
from smith.records.signals import Signals

OID = "a" * 40


def entry(
    number: int, *, lineage: int | None = None, operator: str = "norm", kind: Kind = Kind.FIX, lines: int = 5
) -> Entry:
    candidate = Candidate(
        repo="own/kernels",
        url="https://example.org/own/kernels",
        pr=number,
        title="t",
        form=MergeForm.SQUASH,
        evidence=Evidence.SUBJECT,
        base=OID,
        merged=OID,
        merged_at="2025-03-01T00:00:00+00:00",
        kind=kind,
        languages=("triton",),
    )
    signals = Signals(operators=(operator,) if operator else (), lines_added=lines)
    return Entry(candidate, signals, f"own/kernels#{lineage if lineage is not None else number}")


def ids(entries: tuple[Entry, ...]) -> list[str]:
    return [one.id for one in entries]


@st.composite
def pools(draw: st.DrawFn) -> list[Entry]:
    return [
        entry(
            number,
            lineage=draw(st.integers(1, number)),
            operator=draw(st.sampled_from(["norm", "gemm", "moe", ""])),
            kind=draw(st.sampled_from([Kind.FIX, Kind.PERF])),
            lines=draw(st.sampled_from([3, 60, 5000])),
        )
        for number in range(1, draw(st.integers(0, 40)) + 1)
    ]


@given(pools(), st.integers(0, 50), st.integers(0, 5))
def test_size_and_no_lineage_twice_unless_needed(pool: list[Entry], n: int, seed: int) -> None:
    chosen = choose(pool, n, seed=seed).train
    assert len(chosen) == min(n, len(pool)) == len(set(ids(chosen)))
    most = max(Counter(one.lineage for one in chosen).values(), default=0)
    if n <= len({one.lineage for one in pool}):
        assert most <= 1
    else:
        assert {one.lineage for one in chosen} == {one.lineage for one in pool}


@given(pools(), st.integers(0, 30), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(pool: list[Entry], n: int, random: object) -> None:
    shuffled = list(pool)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first = choose(pool, n, seed=3, holdout=0.3)
    assert first == choose(shuffled, n, seed=3, holdout=0.3) == choose(pool + shuffled, n, seed=3, holdout=0.3)


@given(pools(), st.integers(0, 30), st.floats(0, 0.9), st.integers(0, 5))
def test_no_lineage_is_on_both_sides(pool: list[Entry], n: int, holdout: float, seed: int) -> None:
    sample = choose(pool, n, seed=seed, holdout=holdout)
    assert not {one.lineage for one in sample.train} & {one.lineage for one in sample.held_out}
    assert len(sample.held_out) <= round(n * holdout) and len(sample.train) <= n - round(n * holdout)
    sides = split([one.lineage for one in pool], holdout, seed)
    assert all(sides[one.lineage] == "held_out" for one in sample.held_out)
    assert all(sides[one.lineage] == "train" for one in sample.train)


STRATA = st.dictionaries(st.tuples(st.text(max_size=3)), st.integers(1, 60), min_size=1, max_size=12)


@given(STRATA, st.integers(0, 300))
def test_seats_are_in_proportion(sizes: dict[tuple[str, ...], int], n: int) -> None:
    seats = allot(sizes, n)
    total, n = sum(sizes.values()), min(n, sum(sizes.values()))
    assert sum(seats.values()) == n
    assert all(0 <= seats[stratum] <= size for stratum, size in sizes.items())
    quotas = {stratum: size * n / total for stratum, size in sizes.items()}
    if n >= len(sizes):
        assert all(seat >= 1 for seat in seats.values())
    if n < len(sizes) or all(quota >= 1 for quota in quotas.values()):
        assert all(abs(seats[stratum] - quota) < 1 for stratum, quota in quotas.items())
    # A larger stratum never has fewer.
    ordered = sorted(sizes, key=lambda stratum: sizes[stratum])
    assert all(seats[small] <= seats[large] for small, large in pairwise(ordered) if sizes[small] < sizes[large])


@given(st.lists(st.text(max_size=6), unique=True), st.lists(st.text(max_size=6)), st.integers(0, 9))
def test_a_new_lineage_moves_no_old_one(old: list[str], new: list[str], seed: int) -> None:
    before, after = split(old, 0.3, seed), split([*new, *old], 0.3, seed)
    assert all(after[name] == side for name, side in before.items())


def test_the_share_held_out_is_about_what_was_asked_for() -> None:
    sides = Counter(split((f"own/kernels#{number}" for number in range(4000)), 0.25, "s").values())
    assert 900 <= sides["held_out"] <= 1100


def test_seeds_give_different_samples() -> None:
    pool = [entry(number) for number in range(1, 200)]
    assert len({tuple(ids(choose(pool, 10, seed=seed).train)) for seed in range(10)}) == 10


def test_strata_are_what_by_says() -> None:
    pool = [entry(number, operator="gemm" if number > 90 else "norm") for number in range(1, 101)]
    by_operator = Counter(one.signals.operators[0] for one in choose(pool, 10, by=("operator",)).train)
    assert by_operator == {"norm": 9, "gemm": 1}


@pytest.mark.parametrize(("lines", "size"), [(0, "xs"), (10, "xs"), (11, "s"), (200, "m"), (800, "l"), (801, "xl")])
def test_size_classes_have_fixed_bounds(lines: int, size: str) -> None:
    assert size_class(lines) == size


@pytest.mark.parametrize(
    ("n", "by", "holdout"), [(-1, ("kind",), 0.0), (1, ("colour",), 0.0), (1, ("kind",), 1.0), (1, ("kind",), -0.1)]
)
def test_bad_input_is_refused(n: int, by: tuple[str, ...], holdout: float) -> None:
    with pytest.raises(BadInput):
        choose([entry(1)], n, by=by, holdout=holdout)
