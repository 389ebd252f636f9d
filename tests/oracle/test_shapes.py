"""Variants of a call: each can be drawn and made, equal sizes stay equal, and layouts leave the values alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.oracle.arrays import EPSILON, expected_bytes
from smith.oracle.shapes import FAR, LAYOUTS, LONG, MOST_BYTES, NAMES, laid_out, proposals, refilled, resized
from smith.oracle.values import draw
from smith.records.workload import CallSpec, Fill, State, TensorSpec, Upstream, Value


def floats(*shape: int, strides: tuple[int, ...] = ()) -> TensorSpec:
    return TensorSpec(shape=shape, dtype="float32", strides=strides, fill=Fill(kind="normal", std=1.0))


def whole(kind: str, values: tuple[int, ...], *shape: int) -> TensorSpec:
    return TensorSpec(
        shape=shape or (len(values),), dtype="int64", fill=Fill.model_validate({"kind": kind, "values": values})
    )


def call(*args: TensorSpec | int, **more: object) -> CallSpec:
    values = tuple(
        Value(kind="int", number=one) if isinstance(one, int) else Value(kind="tensor", tensor=one) for one in args
    )
    return CallSpec.model_validate({"kind": "function", "entry": "a.b", "module": "a", "args": values, **more})


def shapes(one: CallSpec | None) -> list[tuple[int, ...]]:
    assert one is not None
    return [tensor.shape for tensor in one.tensors]


def test_equal_sizes_and_numbers_are_changed_together() -> None:
    given_ = call(floats(4, 64), floats(64, 8), 64, upstream=(Upstream(output=0, tensor=floats(4, 8)),))
    odd = next(one.call for one in proposals(given_) if one.name == "odd")
    assert shapes(odd) == [(5, 65), (65, 9)]
    assert odd.args[2].number == 65
    assert odd.upstream[0].tensor.shape == (5, 9)
    without = resized(given_, {64: 65}, numbers=False)
    assert without is not None and without.args[2].number == 64 and shapes(without) == [(4, 65), (65, 8)]


def test_different_sizes_stay_different() -> None:
    odd = next(one.call for one in proposals(call(floats(3, 4, 5))) if one.name == "odd")
    assert shapes(odd) == [(5, 7, 9)]


def test_a_product_of_two_sizes_follows_them() -> None:
    made = resized(call(floats(2, 16, 5), floats(32, 5)), {2: 3, 16: 17, 32: 33, 5: 7}, numbers=True, products=True)
    assert shapes(made) == [(3, 17, 7), (51, 7)]


def test_whole_numbers_go_on_or_the_variant_is_none() -> None:
    assert refilled(Fill(kind="exact", values=(0, 2, 4)), 5).values == (0, 2, 4, 6, 8)
    assert refilled(Fill(kind="shuffled", values=(7, 9)), 5).values == (7, 9, 7, 9, 7)
    assert refilled(Fill(kind="exact", values=(0, 2, 9)), 0).values == ()
    with pytest.raises(ValueError, match="continued"):
        refilled(Fill(kind="exact", values=(0, 2, 9)), 4)
    # Boundaries of sequences cannot be invented: only what leaves them as they are is proposed.
    for one in proposals(call(floats(10, 6), whole("exact", (0, 3, 10)))):
        if one.name in ("odd", "long"):
            assert one.call.tensors[1].fill.values == (0, 3, 10)


def test_strides_keep_their_order_and_gaps() -> None:
    turned = resized(call(floats(6, 4, strides=(1, 8))), {6: 7, 4: 5}, numbers=False)
    assert turned is not None and turned.tensors[0].strides == (1, 9)
    spread = resized(call(floats(6, 4, strides=(0, 1))), {6: 7, 4: 5}, numbers=False)
    assert spread is not None and spread.tensors[0].strides == (0, 1) and spread.tensors[0].drawn_shape == (1, 5)


def test_layouts() -> None:
    one = call(floats(3, 4))
    strided, padded, offset = (laid_out(one, name) for name in LAYOUTS)
    assert strided is not None and strided.tensors[0].strides == (8, 2)
    assert padded is not None and padded.tensors[0].strides == (7, 1)
    assert offset is not None and (offset.tensors[0].strides, offset.tensors[0].offset) == ((), FAR)
    both = laid_out(call(floats(3, 4), floats(4), whole("shuffled", (1, 2, 3, 4), 2, 2)), "strided")
    assert both is not None and [t.strides for t in both.tensors] == [(8, 2), (), (4, 2)]
    state = (State(name="weight", tensor=floats(4)),)
    assert laid_out(call(state=state), "strided") is None
    assert laid_out(call(whole("shuffled", (1, 2))), "offset") is None


def test_a_call_that_never_was_varied_has_the_bytes_that_it_had() -> None:
    assert b"offset" not in call(floats(3, 4)).dumps()


SIZES = st.lists(st.sampled_from([0, 1, 2, 3, 8, 16, 64]), max_size=3).map(tuple)
FLOATS = st.builds(
    lambda shape, dtype: TensorSpec(shape=shape, dtype=dtype, fill=Fill(kind="normal", std=1.0)),
    SIZES,
    st.sampled_from(sorted(EPSILON)),
)
WHOLE = st.builds(
    lambda shape, kind: whole(kind, tuple(range(math.prod(shape))), *shape) if shape else whole(kind, (3,), 1),
    st.lists(st.sampled_from([1, 2, 3, 8, 16]), min_size=1, max_size=2).map(tuple),
    st.sampled_from(["exact", "shuffled"]),
)
TURNED = st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda s: floats(*s, strides=(1, s[0] + 1)))


@given(st.lists(FLOATS | WHOLE | TURNED | st.integers(-1, 70), max_size=4))
def test_every_variant_can_be_drawn(args: list[TensorSpec | int]) -> None:
    one = call(*args)
    found = proposals(one)
    assert found[0].name == "recorded" and found[0].call == one
    assert [NAMES.index(p.name) for p in found] == sorted(NAMES.index(p.name) for p in found)
    assert len({p.call.signature for p in found}) == len(found)
    for proposal in found:
        assert CallSpec.loads(proposal.call.dumps(), "call.json") == proposal.call
        blobs = draw(proposal.call, 1, 2, 0)
        for spec, blob in zip(proposal.call.tensors, blobs, strict=True):
            assert len(blob) == expected_bytes(spec.drawn_shape, spec.dtype)
        assert sum(map(len, blobs)) <= MOST_BYTES or proposal.name == "recorded"
        if proposal.name in LAYOUTS:
            assert blobs == draw(one, 1, 2, 0)
        if proposal.name in ("odd", "long"):
            assert any(s % 2 for shape in shapes(proposal.call) for s in shape)
        # Equal sizes stay equal, so a change of sizes is a mapping (a product in place of one may differ).
        pairs = zip(one.tensors, proposal.call.tensors, strict=True)
        mapping = {(a, b) for x, y in pairs for a, b in zip(x.shape, y.shape, strict=True)}
        assert len({a for a, _ in mapping}) == len(mapping)
    if any(p.name == "long" for p in found):
        assert any(LONG in shape or max(shape, default=0) > LONG for p in found for shape in shapes(p.call))
