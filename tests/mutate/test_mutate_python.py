"""Operators on Python kernels: each on a real kernel, and what holds of all of them on every kernel of the sample."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from smith.mine.rules import load
from smith.mutate.edits import edited
from smith.mutate.python_sites import OPERATORS, sites

RULES = load()
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
KERNEL = HEAD + dedent(
    '''\
    @triton.jit
    def k(X, Y, stride_x, stride_y, n_cols, eps, BLOCK: tl.constexpr):
        """A - docstring < of 1."""
        row = tl.program_id(0).to(tl.int64)
        cols = tl.arange(0, BLOCK)
        tl.static_assert(BLOCK <= 4096)
        x = tl.load(X + row * stride_x + cols, mask=cols < n_cols, other=0.0).to(tl.float32)  # a - b
        if n_cols > 1:
            top = tl.maximum(tl.max(-x, axis=0), 1e-10)
        total = tl.sum(tl.where(x == 0, top, x), axis=0) / n_cols
        for i in range(0, n_cols, BLOCK):
            total += tl.exp(x - top) * tl.sqrt(total + eps)
        tl.debug_barrier()
        tl.store(Y + row * stride_y + cols, total * 2, mask=cols < n_cols)
        tl.atomic_add(Y, total, mask=cols < n_cols, sem="relaxed")
    '''
)


def mutants(operator: str, text: str = KERNEL, device: str = "cpu") -> list[tuple[str, ...]]:
    """What each mutant of one operator has in the place of the lines that it changes."""
    found = []
    for site in sites(text, RULES, {"k"}, (), device):
        if site.operator == operator:
            new = edited(text, site.edits)
            ast.parse(new)
            before, after = text.splitlines(), new.splitlines()
            assert len(before) == len(after)
            found.append(tuple(b.strip() for a, b in zip(before, after, strict=True) if a != b))
    return found


LOAD = "x = tl.load(X + row * stride_x + cols, mask=cols < n_cols, other=0.0).to(tl.float32)  # a - b"
SUM = "total = tl.sum(tl.where(x == 0, top, x), axis=0) / n_cols"
STORE = "tl.store(Y + row * stride_y + cols, total * 2, mask=cols < n_cols)"
STEP = "total += tl.exp(x - top) * tl.sqrt(total + eps)"
ATOMIC = 'tl.atomic_add(Y, total, mask=cols < n_cols, sem="relaxed")'
TOP = "top = tl.maximum(tl.max(-x, axis=0), 1e-10)"


@pytest.mark.parametrize(
    ("operator", "lines"),
    [
        (
            "mask_removed",
            [
                LOAD.replace("mask=cols < n_cols, other=0.0", "mask=None, other=None"),
                STORE.replace("cols < n_cols", "None"),
                ATOMIC.replace("cols < n_cols", "None"),
            ],
        ),
        (
            "boundary_shifted",
            [
                *(line.replace("cols < n_cols", "cols <= n_cols") for line in (LOAD, STORE, ATOMIC)),
                "if n_cols >= 1:",
            ],
        ),
        ("loop_shortened", ["for i in range(0, (n_cols) - 1, BLOCK):"]),
        (
            "stride_swapped",
            [LOAD.replace("stride_x", "stride_y"), STORE.replace("stride_y", "stride_x")],
        ),
        ("atomic_made_plain", ["tl.store(Y, total, mask=cols < n_cols)"]),
        ("barrier_removed", ["pass"]),
        ("accumulator_lowered", [LOAD.replace("float32", "float16"), LOAD.replace("float32", "bfloat16")]),
        ("axis_changed", []),  # nothing here has two dimensions
        ("epsilon_changed", [TOP.replace("1e-10", "(1e-10 * 100)"), STEP.replace("eps", "(eps * 100)")]),
        ("sign_flipped", [TOP.replace("-x", "x")]),
        (
            "plus_and_minus",
            [STEP.replace("+=", "-="), STEP.replace("x - top", "x + top"), STEP.replace("+ eps", "- eps")],
        ),
        (
            "times_and_by",
            [
                LOAD.replace("row * ", "row + "),
                SUM.replace(") / n", ") * n"),
                STEP.replace(" * ", " / "),
                STORE.replace("row * ", "row + "),
                STORE.replace("total * 2", "total / 2"),
            ],
        ),
        (
            "constant_shifted",
            [
                LOAD.replace("other=0.0", "other=1.0"),
                "if n_cols > 2:",
                SUM.replace("== 0", "== 1"),
                STORE.replace("* 2", "* 3"),
            ],
        ),
        (
            "condition_negated",
            ["if not (n_cols > 1):", SUM.replace("top, x", "x, top"), SUM.replace("==", "!=")],
        ),
        ("function_confused", [STEP.replace("exp", "exp2"), STEP.replace("sqrt", "rsqrt")]),
        ("extreme_confused", [TOP.replace("maximum", "minimum"), TOP.replace("tl.max(", "tl.min(")]),
    ],
)
def test_each_operator_on_one_kernel(operator: str, lines: list[str]) -> None:
    assert sorted(mutants(operator)) == sorted((line,) for line in lines)


def test_every_operator_is_documented_and_tried_above() -> None:
    assert all(operator.__doc__ for operator in OPERATORS)
    marks = test_each_operator_on_one_kernel.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in marks[0].args[1]} == {operator.__name__ for operator in OPERATORS}


def test_the_interpreter_cannot_miss_a_barrier() -> None:
    assert mutants("barrier_removed", device="interpreter:gfx942") == []


def body(line: str, parameters: str = "X, n") -> str:
    return HEAD + f"@triton.jit\ndef k({parameters}):\n    {line}\n"


@pytest.mark.parametrize(
    ("operator", "line", "made"),
    [
        ("mask_removed", "tl.load(X, m, 0.0)", ["tl.load(X, None, None)"]),
        ("mask_removed", "tl.store(X, 1, m)", ["tl.store(X, 1, None)"]),
        ("mask_removed", "tl.load(X)", []),
        (
            "mask_removed",
            'tl.load(X, boundary_check=(0, 1), padding_option="zero")',
            ['tl.load(X, boundary_check=(), padding_option="")'],
        ),
        ("boundary_shifted", "m = (n) <= (X)", ["m = (n) < (X)"]),
        ("boundary_shifted", "m = 0 <= n < X", ["m = 0 < n < X", "m = 0 <= n <= X"]),
        ("boundary_shifted", "é = 'é'; m = n > X", ["é = 'é'; m = n >= X"]),
        ("plus_and_minus", "y = ((n + 1)) - (2)", ["y = ((n - 1)) - (2)", "y = ((n + 1)) + (2)"]),
        ("plus_and_minus", "y = n + 0", []),
        ("plus_and_minus", "p_x = X_ptr + n", []),
        ("plus_and_minus", "tl.load(X + n + 1)", []),
        ("plus_and_minus", "tl.load(X + (n - 1))", ["tl.load(X + (n + 1))"]),
        ("times_and_by", "y = n ** 2 // 3 * 1", []),
        ("sign_flipped", "y = -float('inf')", ["y = float('inf')"]),
        ("sign_flipped", "y = float('-inf')", ['y = float("inf")']),
        ("sign_flipped", "y = tl.sum(X, axis=-1) + X[-1]", []),
        ("axis_changed", "y = tl.sum(X[None, :], axis=0)", ["y = tl.sum(X[None, :], axis=1)"]),
        ("axis_changed", "y = tl.sum(X[:, None], -1)", ["y = tl.sum(X[:, None], 0)"]),
        ("axis_changed", "y = tl.sum(tl.dot(X, n), 1)", ["y = tl.sum(tl.dot(X, n), 0)"]),
        (
            "accumulator_lowered",
            "y = tl.zeros((4, 4), dtype=tl.float32)",
            ["y = tl.zeros((4, 4), dtype=tl.float16)", "y = tl.zeros((4, 4), dtype=tl.bfloat16)"],
        ),
        ("accumulator_lowered", "y = X.dtype == tl.float32", []),
        ("atomic_made_plain", "y = tl.atomic_add(X, n)", []),
        ("constant_shifted", "y = tl.arange(0, 8) + X.shape[0] + n.stride(1)", []),
        ("constant_shifted", "y = X - 1", ["y = X - 2"]),
        ("function_confused", "y = math.sqrt(n)", []),
        ("loop_shortened", "range(n)", ["range((n) - 1)"]),
    ],
)  # fmt: skip
def test_layouts_and_what_is_left_alone(operator: str, line: str, made: list[str]) -> None:
    assert sorted(mutants(operator, body(line))) == sorted((one,) for one in made)


def test_neighbouring_strides_of_a_launch_are_swapped() -> None:
    text = HEAD + "def launch(x, y):\n    k[(1,)](x, x.stride(0), y.stride(0), y.stride(0))\n"
    assert mutants("stride_swapped", text) == [("k[(1,)](x, y.stride(0), x.stride(0), y.stride(0))",)]


def test_other_kernels_are_left_alone_unless_a_line_of_them_changed() -> None:
    text = KERNEL + "\n\n@triton.jit\ndef other(X, n):\n    tl.store(X, n - 1)\n"
    line = text.count("\n")
    assert {site.kernel for site in sites(text, RULES, {"k"}, (), "cpu")} == {"k"}
    assert {site.kernel for site in sites(text, RULES, {"k"}, {line}, "cpu")} == {"k", "other"}


def test_what_does_not_parse_has_no_sites() -> None:
    assert sites(KERNEL + "def (", RULES, {"k"}, (), "cpu") == []
