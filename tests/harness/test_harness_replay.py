"""Calls replayed in the real sandbox: what cheats look like from outside, and answers that are none."""

from __future__ import annotations

import contextlib
import json

import pytest
from harness_bench import Bench
from hypothesis import given
from hypothesis import strategies as st

from smith.grade.oracle import first_difference, fresh
from smith.harness.replaying import Made, Replayed, _Malformed, _read, replay
from smith.harness.stage import Stage
from smith.oracle.compare import Outcome
from smith.records.workload import Call, CallSpec, Fill, State, TensorSpec, Upstream, Value

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.timeout(600)

TINY = """
import torch

def honest(x, w):
    return (x * w).sum(-1) + x.amax(-1)

def rewritten(x, w):
    order = torch.arange(x.shape[-1] - 1, -1, -1)
    return x.flip(-1).amax(-1) + (x[:, order] * w[order]).sum(-1)

SEEN = {}

def by_shape(x, w):
    if x.shape not in SEEN:
        SEEN[x.shape] = honest(x, w)
    return SEEN[x.shape].clone()

def by_pointer(x, w):
    key = (x.data_ptr(), x.shape, "pointer")
    if key not in SEEN:
        SEEN[key] = honest(x, w)
    return SEEN[key].clone()

def by_object(x, w):
    key = (id(x), x._version)
    if key not in SEEN:
        SEEN[key] = honest(x, w)
    return SEEN[key].clone()

def constant(x, w):
    return torch.zeros(len(x))

def mutating(x, w):
    result = honest(x, w)
    x.detach().mul_(1.0001)
    return result

def freed(x, w):
    return torch.empty(len(x))

STATIC = {}

def one_buffer(x, w):
    out = STATIC.setdefault(x.shape, torch.empty(len(x)))
    out.copy_(honest(x, w))
    return out

def aliasing(x, w):
    return x.new_empty(0).set_(x.untyped_storage(), 0, (len(x),), (x.shape[1],)).copy_(honest(x, w))

def half(x, w):
    return ((x.half() * w.half()).sum(-1) + x.half().amax(-1)).float()

def odd(x, w):
    result = honest(x, w)
    return torch.where(x[:, 0] > 2.0, result + 1, result)

def nan(x, w):
    result = honest(x, w)
    result[0] = float("nan")
    return result

def listed(x, w):
    return [honest(x, w)]

def strided(x, w):
    return honest(x, w).repeat_interleave(2)[::2]

def breaks(x, w):
    raise ValueError("no such shape")

def leaves(x, w):
    import os
    os._exit(3)

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None

class Layer(torch.nn.Module):
    def __init__(self, size, bias=True):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(size))
        self.bias = torch.nn.Parameter(torch.zeros(size)) if bias else None

    def forward(self, x):
        return Scale.apply(x * self.weight, 3.0) + self.bias
"""


def tensor(*shape: int, grad: bool = False, strides: tuple[int, ...] = ()) -> TensorSpec:
    return TensorSpec(shape=shape, dtype="float32", fill=Fill(kind="normal", std=1.0), grad=grad, strides=strides)


def function(name: str) -> CallSpec:
    args = (Value(kind="tensor", tensor=tensor(33, 20)), Value(kind="tensor", tensor=tensor(20)))
    return CallSpec(kind="function", entry=f"tiny.{name}", module="tiny", args=args)


def same_values(specs: list[CallSpec], seed: int = 7) -> list[Made]:
    """All with the values of the first."""
    (one,) = fresh(specs[:1], seed)
    return [Made(spec, one.passes) for spec in specs]


CHEATS = {
    "by_shape": "called again with other values: output 0: ",
    "by_pointer": "called again with other values: output 0: ",
    "by_object": "called again with other values: output 0: ",
    "constant": "output 0: 33 of 33 values are wrong",
    "mutating": "input 0 is changed by the call",
    "freed": "output 0: ",
    "one_buffer": "called again with other values: a later call overwrites the earlier result [0]",
    "aliasing": "output 0 shares memory with input 0",
    "half": "output 0: ",
    "odd": "values are wrong",
    "nan": "output 0: 1 of 33 values are wrong, worst at [0]: nan for",
    "listed": "a result of another structure",
    "strided": "output 0: layout strided, not contiguous",
    "breaks": "raises ValueError: no such shape",
    "leaves": "raises the process ended in it (status 3)",
}


def test_cheats_differ_and_an_honest_rewrite_does_not(bench: Bench) -> None:
    bench.write("tiny.py", TINY)
    stage = Stage(bench.sandbox, bench.place, bench.environment, bench.recipe, "cpu")
    names = ["honest", "rewritten", *CHEATS]
    outcomes = replay(stage, same_values([function(name) for name in names]), seed=1, call_s=20)
    want = outcomes[0]
    assert [one.error for one in want] == ["", ""]
    call = Call(call=function("honest"), seconds=0.0, errors={"output 0": 2e-7})
    assert first_difference(call, want, outcomes[1]) == ""
    said = {name: first_difference(call, want, got) for name, got in zip(CHEATS, outcomes[2:], strict=True)}
    assert {name: words for name, words in said.items() if CHEATS[name] not in words} == {}


def test_gradients_of_functions_and_modules_and_a_crash_in_between(bench: Bench) -> None:
    bench.write("tiny.py", TINY)
    stage = Stage(bench.sandbox, bench.place, bench.environment, bench.recipe, "cpu")
    back = (Upstream(output=0, tensor=tensor(4, 6)),)
    strided = tensor(4, 6, grad=True, strides=(1, 4))
    scale = CallSpec(
        kind="autograd",
        entry="tiny.Scale",
        module="tiny",
        args=(Value(kind="tensor", tensor=strided), Value(kind="float", text="0.5")),
        upstream=back,
    )
    layer = CallSpec(
        kind="module",
        entry="tiny.Layer",
        module="tiny",
        made_with=(Value(kind="int", number=6),),
        state=(State(name="bias", tensor=tensor(6, grad=True)), State(name="weight", tensor=tensor(6, grad=True))),
        args=(Value(kind="tensor", tensor=tensor(4, 6)),),
        upstream=back,
    )
    odd = layer.model_copy(update={"made_with_named": {"bias": Value(kind="bool", number=0)}})
    calls = fresh([scale, function("leaves"), layer, odd], 3)
    outcomes = replay(stage, calls, seed=1, call_s=20, crashes=1)
    for turn, one in enumerate(outcomes[0]):
        x, grad = (torch.frombuffer(bytearray(b), dtype=torch.float32).reshape(4, 6) for b in calls[0].passes[turn])
        assert one.outputs[0].data == (x * 0.5).numpy().tobytes() and one.outputs[0].layout == "strided"
        assert one.grads[0] is not None and one.grads[0].data == (grad * 0.5).numpy().tobytes()
    assert "the process ended in it" in outcomes[1][0].error
    for turn, one in enumerate(outcomes[2]):
        parts = [torch.frombuffer(bytearray(b), dtype=torch.float32) for b in calls[2].passes[turn]]
        bias, weight, x, grad = parts[0], parts[1], parts[2].reshape(4, 6), parts[3].reshape(4, 6)
        assert one.outputs[0].data == ((x * weight) * 3.0 + bias).numpy().tobytes()
        of_bias, of_weight = one.grads
        assert of_bias is not None and of_bias.data == grad.sum(0).numpy().tobytes()
        assert of_weight is not None and of_weight.shape == (6,)
    assert outcomes[3][0].error.startswith("LookupError: the module's state is")


# -- answers that are none ----------------------------------------------------------------------------------------


def frame(record: object, *blobs: bytes) -> bytes:
    line = json.dumps(record).encode()
    return b"%d\n" % len(line) + line + b"".join(blobs)


RESULT = {
    "call": 0, "pass": 0, "skeleton": "tensor", "grads": [], "inputs": [], "overwritten": [], "seconds": 0.1,
    "outputs": [{"shape": [2], "dtype": "int8", "layout": "contiguous", "bytes": 2, "shares": [], "among": []}],
}  # fmt: skip


def test_a_whole_answer_is_read() -> None:
    into = Replayed()
    data = frame({"begin": 0}) + frame(RESULT, b"ab") + frame({**RESULT, "pass": 1}, b"cd") + frame({"end": True})
    assert _read(data, 1, into)
    assert [one.outputs[0].data for one in into.outcomes[0]] == [b"ab", b"cd"]
    for cut in range(len(data)):
        into = Replayed()
        with contextlib.suppress(_Malformed):
            assert not _read(data[:cut], 1, into)


@pytest.mark.parametrize(
    "change",
    [
        {"call": 1}, {"call": True}, {"pass": 1}, {"pass": "0"}, {"outputs": None}, {"outputs": [{}]}, {"grads": {}},
        {"outputs": [{**RESULT["outputs"][0], "bytes": 1}]},  # type: ignore[index]
        {"outputs": [{**RESULT["outputs"][0], "shape": [-2]}]},  # type: ignore[index]
        {"outputs": [{**RESULT["outputs"][0], "shape": [1 << 60]}]},  # type: ignore[index]
        {"outputs": [{**RESULT["outputs"][0], "dtype": "object"}]},  # type: ignore[index]
        {"skeleton": json.loads("[" * 40 + "]" * 40)},
        {"outputs": [{**RESULT["outputs"][0], "layout": "\x1b[2J"}]},  # type: ignore[index]
        {"overwritten": ["x"]}, {"seconds": "soon"}, {"inputs": [None] * 1000},
    ],
)  # fmt: skip
def test_a_forged_record_is_no_result(change: dict[str, object]) -> None:
    with pytest.raises(_Malformed):
        _read(frame({"begin": 0}) + frame({**RESULT, **change}, b"ab"), 1, Replayed())


@given(st.lists(st.one_of(st.binary(max_size=40), st.just(frame({"begin": 0})), st.just(frame(RESULT, b"ab")))))
def test_no_answer_makes_the_reader_raise_anything_else(parts: list[bytes]) -> None:
    into = Replayed()
    with contextlib.suppress(_Malformed):
        _read(b"".join(parts), 1, into)
    for outcomes in into.outcomes.values():
        assert len(outcomes) <= 2 and all(isinstance(one, Outcome) for one in outcomes)
