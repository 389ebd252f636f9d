"""Values, bytes and comparisons of the sealed oracle, held against torch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from smith.oracle.arrays import EPSILON, Array, encode, expected_bytes
from smith.oracle.compare import Outcome, compare, difference, moved, tells, too_wide
from smith.oracle.values import draw, upcast
from smith.records.workload import CallSpec, Fill, TensorSpec, Upstream, Value

torch = pytest.importorskip("torch")


def array(values: Any, dtype: str = "float32", layout: str = "contiguous") -> Array:
    numbers = np.asarray(values)
    return Array(numbers.shape, dtype, layout, encode(numbers.ravel(), dtype))


def outcome(*outputs: Array, **more: Any) -> Outcome:
    shares = tuple(((), ()) for _ in outputs)
    return Outcome(**{"skeleton": "tensor", "outputs": outputs, "shares": shares, **more})


def call(*specs: TensorSpec, **more: Any) -> CallSpec:
    args = tuple(Value(kind="tensor", tensor=spec) for spec in specs)
    return CallSpec(kind="function", entry="a.b.c", module="a.b", args=args, **more)


@given(st.sampled_from(sorted(EPSILON)), st.lists(st.floats(width=32), max_size=20))
def test_bytes_are_those_of_torch(dtype: str, values: list[float]) -> None:
    theirs = torch.tensor(values, dtype=torch.float64).to(getattr(torch, dtype))
    mine = encode(np.array(values, dtype=np.float64), dtype)
    back = torch.frombuffer(bytearray(mine), dtype=theirs.dtype) if values else theirs
    if dtype == "bfloat16":  # torch rounds a double to single first, and so do we
        theirs = torch.tensor(values, dtype=torch.float64).float().to(torch.bfloat16)
    assert torch.equal(back.nan_to_num(1.5), theirs.nan_to_num(1.5))
    assert torch.equal(back.isnan(), theirs.isnan())
    numbers = Array((len(values),), dtype, "", mine).numbers()
    np.testing.assert_array_equal(numbers, theirs.double().numpy())


SPECS = st.builds(
    lambda shape, dtype, mean, std, zeros: TensorSpec(
        shape=tuple(shape),
        dtype=dtype,
        fill=Fill(kind="normal", mean=mean, std=std, low=mean - 2 * std, high=mean + 2 * std, zeros=zeros),
    ),
    st.lists(st.integers(0, 5), max_size=3),
    st.sampled_from(sorted(EPSILON)),
    st.floats(-4, 4),
    st.floats(0, 2),
    st.sampled_from([0.0, 0.5]),
)


@given(st.lists(SPECS, max_size=3), st.integers(0, 2**62))
def test_the_same_seed_gives_the_same_values_and_they_lie_in_range(specs: list[TensorSpec], seed: int) -> None:
    made = call(*specs, upstream=(Upstream(output=0, tensor=specs[0]),) if specs else ())
    blobs = draw(made, seed, 3, 1)
    assert blobs == draw(CallSpec.loads(made.dumps(), "call.json"), seed, 3, 1)
    assert len(blobs) == len(specs) + bool(specs)
    for spec, blob in zip(specs, blobs, strict=False):
        assert len(blob) == expected_bytes(spec.shape, spec.dtype)
        numbers = Array(spec.shape, spec.dtype, "", blob).numbers()
        slack = 0.02 * (1 + abs(spec.fill.mean) + spec.fill.std)  # rounding to half precision
        inside = (numbers >= spec.fill.low - slack) & (numbers <= spec.fill.high + slack)
        assert (inside | (numbers == 0)).all()
    assert draw(made, seed, 3, 1, "rounded") == draw(made, seed, 3, 1, "rounded")
    wide = upcast(made)
    if wide is not None:
        raised = draw(made, seed, 3, 1, "upcast")
        assert [len(b) for b in raised] == [len(b) for b in draw(wide, seed, 3, 1)]


def test_whole_numbers_keep_what_matters_of_them() -> None:
    exact = TensorSpec(shape=(3,), dtype="int32", fill=Fill(kind="exact", values=(0, 15, 40)))
    shuffled = TensorSpec(shape=(4,), dtype="int64", fill=Fill(kind="shuffled", values=(7, 0, 3, -100)))
    broadcast = TensorSpec(shape=(8, 2), strides=(0, 1), dtype="int64", fill=Fill(kind="exact", values=(1, 2)))
    blobs = draw(call(exact, shuffled, broadcast), 5, 0, 0)
    assert np.frombuffer(blobs[0], "<i4").tolist() == [0, 15, 40]
    assert sorted(np.frombuffer(blobs[1], "<i8").tolist()) == [-100, 0, 3, 7]
    assert np.frombuffer(blobs[2], "<i8").tolist() == [1, 2]
    others = {draw(call(exact, shuffled, broadcast), seed, 0, 0)[1] for seed in range(20)}
    assert len(others) > 5
    with pytest.raises(ValidationError, match="a value for each element"):
        TensorSpec(shape=(2,), dtype="int32", fill=Fill(kind="exact", values=(1,)))
    with pytest.raises(ValidationError, match="does not fill"):
        TensorSpec(shape=(2,), dtype="float32", fill=Fill(kind="shuffled", values=(1, 2)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_another_order_of_a_sum_agrees_and_half_precision_does_not(dtype: str) -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    a, b = generator.standard_normal((8, 512)), generator.standard_normal((512, 8))
    x, y = (torch.from_numpy(v).to(getattr(torch, dtype)) for v in (a, b))
    right = (x.float() @ y.float()).to(x.dtype)
    order = torch.randperm(512)
    other = (x.float()[:, order] @ y.float()[order]).to(x.dtype)
    one, two = (array(v.double().numpy(), dtype) for v in (right, other))
    # As measured: one more rounding of a half-precision result, or of single-precision inputs.
    exact = array((x.double() @ y.double()).numpy(), "float32")
    error = (moved(outcome(one), outcome(exact)) or {})["output 0"]
    assert compare(one, two, error) == ""
    if dtype == "float32":
        half = array((x.half() @ y.half()).double().numpy(), dtype)
        assert "values are wrong" in compare(one, half, error)
    off = right.double().numpy().copy()
    off[3, 4] += 0.5 * abs(off).mean()
    assert "1 of 64 values are wrong, worst at [3, 4]" in compare(one, array(off, dtype), error)


def test_what_is_not_a_matter_of_tolerance() -> None:
    nan, inf = math.nan, math.inf
    assert compare(array([1.0, nan, inf]), array([1.0, nan, inf]), 0.0) == ""
    for bad in ([1.0, nan, -inf], [1.0, 2.0, inf], [nan, nan, inf]):
        assert "1 of 3 values are wrong" in compare(array([1.0, nan, inf]), array(bad), 1.0)
    assert compare(array([1, 2], "int32"), array([1, 3], "int32"), 1.0)
    assert compare(array([1, 2], "int8"), array([1, 3], "int8"), 0.0) == ""
    assert compare(array([1, 2], "int8"), array([1, 3], "int8"), 0.0, floats=False)
    assert compare(array([1, 2], "int8"), array([1, 4], "int8"), 0.0)
    assert "type float16" in compare(array([1.0]), array([1.0], "float16"), 1.0)
    assert "layout strided" in compare(array([1.0]), array([1.0], layout="strided"), 1.0)
    assert "layout broadcast" in compare(array([1.0], layout="strided"), array([1.0], layout="broadcast"), 1.0)
    assert compare(array([1.0], layout="strided"), array([1.0]), 0.0) == ""
    assert "shape (1, 2)" in compare(array([1.0, 2.0]), array([[1.0, 2.0]]), 1.0)


def test_structure_aliases_and_mutation() -> None:
    want = outcome(array([1.0]), array([2.0]), skeleton={"tuple": ["tensor", "tensor"]}, inputs=(None, array([3.0])))
    assert difference(want, want, {}) == ""
    for other, said in (
        (replace(want, skeleton={"list": ["tensor", "tensor"]}), "another structure"),
        (replace(want, shares=(((0,), ()), ((), ()))), "output 0 shares memory with input 0"),
        (replace(want, inputs=(array([3.0]), array([3.0]))), "input 0 is changed"),
        (replace(want, inputs=(None, None)), "input 1 is not changed"),
        (replace(want, inputs=(None, array([4.0]))), "input 1 afterwards"),
        (replace(want, grads=(array([1.0]),)), "gradients for other inputs"),
        (replace(want, overwritten=(0,)), "overwrites the earlier result"),
        (Outcome(error="ValueError: no"), "raises ValueError: no"),
    ):
        assert said in difference(want, other, {})
    # A copy where the reference gives a view is honest work; a view where it gives a copy is not the same thing.
    view = replace(want, shares=(((0,), (1,)), ((), (0,))), overwritten=(0,))
    assert difference(view, want, {}) == ""
    assert "shares memory" in difference(want, view, {})
    number = outcome(skeleton={"number": "0.30000000000000004"})
    assert difference(number, outcome(skeleton={"number": "0.3"}), {}) == ""
    assert difference(number, outcome(skeleton={"number": "0.4"}), {})


ARRAYS = st.builds(
    lambda values, dtype, layout: array(values, dtype, layout),
    st.lists(st.sampled_from([0.0, 1.0, -3.0, 100.0]), max_size=3),
    st.sampled_from(["float32", "bfloat16", "int8", "int64", "bool"]),
    st.sampled_from(["contiguous", "strided"]),
)
OUTCOMES = st.builds(
    lambda outputs, grads, inputs, overwritten: outcome(
        *outputs, grads=tuple(grads), inputs=tuple(inputs), overwritten=tuple(overwritten)
    ),
    st.lists(ARRAYS, max_size=2),
    st.lists(st.none() | ARRAYS, max_size=2),
    st.lists(st.none() | ARRAYS, max_size=2),
    st.lists(st.integers(0, 3), max_size=1),
)


@given(OUTCOMES, OUTCOMES)
def test_whatever_a_submission_answers_is_compared(want: Outcome, got: Outcome) -> None:
    assert difference(want, want, {}) == ""
    words = difference(want, got, {})
    assert bool(words) or dict(want.results()).keys() == dict(got.results()).keys()


def test_what_tells_nothing_is_known() -> None:
    assert not tells(outcome(array([math.nan]))) and not tells(outcome()) and tells(outcome(array([0.0])))
    assert too_wide(outcome(array([1.0])), {"output 0": 0.5}) and not too_wide(outcome(array([1.0])), {})
    assert moved(outcome(array([1.0])), outcome(array([math.inf]))) is None
    assert moved(outcome(array([1.0, 1.0])), outcome(array([1.0, 1.5]))) == {"output 0": pytest.approx(0.25)}
