"""A description keeps of an argument what Triton specialises on, and nothing else; Triton itself is the judge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler.compiler import make_backend  # noqa: E402
from triton.runtime.jit import JITFunction, create_function_from_signature  # noqa: E402

from smith.device.compiler.arguments import Unsupported, describe, rebuild  # noqa: E402
from smith.records.compiled import Argument  # noqa: E402

BACKENDS = [
    make_backend(GPUTarget("hip", "gfx942", 64)),
    make_backend(GPUTarget("cuda", 90, 32)),
]
TILE = torch.zeros(4096, dtype=torch.uint8)


def free(x):  # type: ignore[no-untyped-def]
    pass


def kernel_of(function: Any, **options: Any) -> JITFunction:
    return JITFunction(function, **options)


def specialised(kernel: JITFunction, backend: Any, value: Any) -> Any:
    """What Triton makes of the one argument of a kernel: its type, attributes, and the value where it is constant."""
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, specialization, _ = binder(value)
    return [(kind, bound["x"] if kind == "constexpr" else key) for kind, key in specialization]


def nobody(text: str) -> Any:
    raise LookupError(text)


integers = st.one_of(
    st.sampled_from([0, 1, 2, 16, -16, 17, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**63 - 1, 2**63]),
    st.integers(-(2**63), 2**64 - 1),
    st.integers(-(2**20), 2**20).map(lambda n: n * 16),
)
pointers = st.builds(
    lambda dtype, offset: TILE[offset * 8 :][:256].view(dtype),
    st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool]),
    st.integers(0, 7),
)
values = st.one_of(integers, pointers, st.booleans(), st.none(), st.floats(allow_nan=False))
options = st.sampled_from(
    [{}, {"do_not_specialize": ["x"]}, {"do_not_specialize_on_alignment": ["x"]}, {"do_not_specialize": [0]}]
)


def described(value: Any, asked: dict[str, Any], constant: bool = False) -> dict[str, Any]:
    return describe(
        value,
        constant=constant,
        specialise="do_not_specialize" not in asked,
        align="do_not_specialize_on_alignment" not in asked,
    )


@given(value=values, asked=options, backend=st.sampled_from(BACKENDS))
def test_a_stand_in_is_specialised_as_the_value_itself(value: Any, asked: dict[str, Any], backend: Any) -> None:
    kernel = kernel_of(free, **asked)
    description = described(value, asked)
    stand_in = rebuild(json.loads(json.dumps(description)), nobody)
    expected = specialised(kernel, backend, value)
    # A pointer for which alignment was not asked is described as unaligned, which Triton then does not ask either.
    assert specialised(kernel, backend, stand_in) == expected


@given(one=values, other=values, asked=options)
def test_descriptions_differ_exactly_where_some_target_specialises_differently(
    one: Any, other: Any, asked: dict[str, Any]
) -> None:
    kernel = kernel_of(free, **asked)
    same = all(specialised(kernel, b, one) == specialised(kernel, b, other) for b in BACKENDS)
    assert (described(one, asked) == described(other, asked)) is same


constants: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.integers(), st.booleans(), st.none(), st.text(max_size=20), st.floats(), st.just(triton.language.bfloat16)
    ),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=8,
)


@given(value=constants)
def test_constants_come_back_as_they_were(value: Any) -> None:
    description = json.loads(json.dumps(describe(value, constant=True)))
    assert Argument.model_validate(description).kind == description["kind"]
    again = rebuild(description, nobody, constant=True)
    assert type(again) is type(value) and repr(again) == repr(value)


def test_what_no_stand_in_can_be_made_of_is_named() -> None:
    class Odd:
        pass

    description = describe(Odd(), constant=True)
    assert Argument.model_validate(description).kind == "other"
    with pytest.raises(Unsupported, match="Odd"):
        rebuild(description, nobody, constant=True)
    assert describe("x" * 5000, constant=True)["kind"] == "other"
    assert describe(tuple(range(1000)), constant=True)["kind"] == "other"


def test_a_pointer_to_more_than_2_gib_is_another_on_amd() -> None:
    class Huge:
        dtype = torch.float16

        def data_ptr(self) -> int:
            return 64

        def ptr_range(self) -> int:
            return 1 << 32

        def untyped_storage(self) -> Any:
            class Storage:
                def size(self) -> int:
                    return 1 << 32

            return Storage()

    description = describe(Huge())
    assert description == {"kind": "pointer", "text": "float16", "traits": ["aligned"]}
    amd, nvidia = BACKENDS
    kernel = kernel_of(free)
    stand_in = rebuild(description, nobody)
    small = rebuild(describe(TILE), nobody)
    assert specialised(kernel, amd, stand_in) == [("*fp16", "D")]
    assert specialised(kernel, amd, small)[0][1] == "DS"
    assert specialised(kernel, nvidia, stand_in) == [("*fp16", "D")]
