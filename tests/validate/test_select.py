"""Which ids are run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from smith.validate.select import CollectedId, choose
from smith.verdict.sorting import affordable

ITEMS = st.lists(
    st.builds(
        lambda f, n, s: CollectedId(f"t.py::f{f}[{n}]", f"t.py::f{f}", s),
        st.integers(0, 3),
        st.integers(0, 200),
        st.integers(1, 10_000),
    ),
    max_size=60,
    unique_by=lambda i: i.id,
)


@given(ITEMS, st.integers(1, 40))
def test_at_most_the_limit_each_once_small_before_large(items: list[CollectedId], limit: int) -> None:
    chosen = choose(items, new=(), changed=(), limit=limit)
    assert len(chosen) == min(limit, len(items))
    assert len({c.id for c in chosen}) == len(chosen)
    assert [c.size for c in chosen] == sorted(c.size for c in chosen)


@given(ITEMS, st.integers(1, 40), st.data())
def test_new_ids_are_never_left_out_for_old_ones(items: list[CollectedId], limit: int, data: st.DataObject) -> None:
    new = set(data.draw(st.lists(st.sampled_from([i.id for i in items]), unique=True))) if items else set()
    chosen = {c.id for c in choose(items, new=new, changed=(), limit=limit)}
    assert len(chosen & new) == min(limit, len(new))


def test_every_function_gets_its_turn_and_large_sizes_are_not_forgotten() -> None:
    many = [CollectedId(f"t.py::many[{n}]", "t.py::many", n) for n in range(1, 101)]
    few = [CollectedId("t.py::few", "t.py::few", 5)]
    chosen = choose([*many, *few], new=(), changed=(), limit=5)
    assert "t.py::few" in {c.id for c in chosen}
    sizes = [c.size for c in chosen if c.function == "t.py::many"]
    assert min(sizes) == 1
    assert max(sizes) > 50


def test_changed_functions_come_before_the_rest() -> None:
    items = [CollectedId(f"t.py::{name}[{n}]", f"t.py::{name}", n) for name in ("old", "changed") for n in range(9)]
    chosen = choose(items, new=(), changed={"t.py::changed"}, limit=9)
    assert {c.function for c in chosen} == {"t.py::changed"}


@given(st.lists(st.floats(0, 50), max_size=20), st.floats(0, 100))
def test_guards_fit_their_budget_unless_there_would_be_too_few(seconds: list[float], budget: float) -> None:
    ids = [f"t.py::t{n}" for n in range(len(seconds))]
    cost = dict(zip(ids, seconds, strict=True))
    kept = affordable(ids, cost, budget)
    assert kept == [i for i in ids if i in set(kept)]
    assert len(kept) >= min(3, len(ids))
    assert sum(cost[i] for i in kept) <= budget + 1e-6 or len(kept) <= 3
    assert max((cost[i] for i in kept), default=0) <= min((cost[i] for i in ids if i not in kept), default=1e9)
