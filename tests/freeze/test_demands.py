"""Data types, tolerances and behaviours that hidden tests demand."""

from __future__ import annotations

import ast

from smith.freeze.demands import behaviours, find_demands

TEST = """
@pytest.mark.parametrize("dtype, atol, rtol", [(torch.float32, 1e-5, 1e-6), pytest.param(torch.bfloat16, 1e-2, 1e-2)])
def test_norm(dtype, atol, rtol):
    idx = torch.arange(3, dtype=torch.int64)
    torch.testing.assert_close(y, ref, atol=atol, rtol=rtol)
    assert torch.equal(a, b)
    assert_close("dx", ref, tri, 0.004)
    run(out_dtype="fp8", other=torch.half)
"""


def test_types_and_tolerances_are_found_by_parsing() -> None:
    found = find_demands([ast.parse(TEST), None], ())
    assert found.types == ("float32", "float16", "bfloat16", "fp8")
    assert found.tolerances == (
        "absolute 1e-05 to 0.01",
        "relative 1e-06 to 0.01",
        "tolerance 0.004",
        "exact equality in places",
    )


def test_names_of_tests_say_what_is_checked_where_they_say_something() -> None:
    tests = [
        "t/test_norm.py::test_norm",
        "t/test_norm.py::test_correctness",
        "t/test_norm.py::TestA::test_keeps_small_suffix",
    ]
    assert behaviours(tests) == ("keeps small suffix",)
