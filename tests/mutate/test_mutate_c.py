"""Operators on kernels in C and HIP: each on a real kernel, and that what is made of C still compiles."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from smith.mine.rules import load
from smith.mutate.c_sites import OPERATORS, sites
from smith.mutate.edits import edited

RULES = load()
HIP = """\
#include <hip/hip_runtime.h>
template <typename T>
__global__ void k(const float *x, float *y, double *total, int n, float eps)
{
    __shared__ float tile[64 + 1]; // a - b < c
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 64) {
        sum += fmaxf(x[i], -y[i]) * expf(x[i]);
        tile[i] = static_cast<T>(sum);
    }
    __syncthreads();
    if (n > 1) atomicAdd(&total[0], double(sum));
    else
        atomicAdd(total, rsqrtf(sum + eps));
    y[n] = sum / n + 1e-6f;
}
__global__ void other(float *x) { x[0] = x[1] - 1; }
"""
LOOP = "    for (int i = threadIdx.x; i < n; i += 64) {"
STEP = "        sum += fmaxf(x[i], -y[i]) * expf(x[i]);"
FIRST = "    if (n > 1) atomicAdd(&total[0], double(sum));"
SECOND = "        atomicAdd(total, rsqrtf(sum + eps));"
LAST = "    y[n] = sum / n + 1e-6f;"


def mutants(operator: str, text: str = HIP, path: str = "csrc/k.hip", kernel: str = "k") -> list[str]:
    """The line that each mutant of one operator changes."""
    found = []
    for site in sites(text, path, RULES, {kernel}, ()):
        if site.operator == operator:
            before, after = text.splitlines(), edited(text, site.edits).splitlines()
            (line,) = [b for a, b in zip(before, after, strict=True) if a != b]
            found.append(line)
    return found


@pytest.mark.parametrize(
    ("operator", "lines"),
    [
        ("boundary_shifted", [LOOP.replace("i < n", "i <= n"), FIRST.replace("n > 1", "n >= 1")]),
        ("loop_shortened", [LOOP.replace("i < n", "i < n - 1")]),
        (
            "plus_and_minus",
            [
                "    __shared__ float tile[64 - 1]; // a - b < c",
                LOOP.replace("+=", "-="),
                STEP.replace("+=", "-="),
                SECOND.replace("+", "-"),
                LAST.replace("+", "-"),
            ],
        ),
        ("times_and_by", [STEP.replace(") * e", ") / e"), LAST.replace("sum / n", "sum * n")]),
        ("sign_flipped", [STEP.replace("-y", "y")]),
        ("barrier_removed", ["    ((void)0);"]),
        (
            "atomic_made_plain",
            ["        *(total) += rsqrtf(sum + eps);", "    if (n > 1) total[0] += double(sum);"],
        ),
        ("accumulator_lowered", ["    _Float16 sum = 0.0f;", FIRST.replace("double", "float")]),
        (
            "index_shifted",
            [
                STEP.replace("fmaxf(x[i]", "fmaxf(x[i + 1]"),
                STEP.replace("-y[i]", "-y[i + 1]"),
                STEP.replace("expf(x[i]", "expf(x[i + 1]"),
                "        tile[i + 1] = static_cast<T>(sum);",
                FIRST.replace("total[0]", "total[0 + 1]"),
                LAST.replace("y[n]", "y[n + 1]"),
            ],
        ),
        ("epsilon_changed", [SECOND.replace("eps", "(eps * 100)"), LAST.replace("1e-6f", "(1e-6f * 100)")]),
        ("condition_negated", [FIRST.replace("(n > 1)", "(!(n > 1))")]),
        ("function_confused", [STEP.replace("expf", "exp2f"), SECOND.replace("rsqrtf", "sqrtf")]),
        ("extreme_confused", [STEP.replace("fmaxf", "fminf")]),
    ],
)
def test_each_operator_on_one_kernel(operator: str, lines: list[str]) -> None:
    assert sorted(mutants(operator)) == sorted(lines)


def test_every_operator_is_documented_and_tried_above() -> None:
    assert all(operator.__doc__ for operator in OPERATORS)
    marks = test_each_operator_on_one_kernel.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in marks[0].args[1]} == {operator.__name__ for operator in OPERATORS}


def test_only_kernels_that_changed() -> None:
    last = HIP.count("\n")
    assert {site.kernel for site in sites(HIP, "csrc/k.hip", RULES, {"k"}, ())} == {"k"}
    assert {site.kernel for site in sites(HIP, "csrc/k.hip", RULES, (), {last})} == {"other"}


NATIVE = """\
#include <math.h>
#include <stdint.h>
void rms_norm(const float *restrict x, float *restrict y, int64_t rows, int64_t cols, float eps)
{
    for (int64_t r = 0; r < rows; ++r) {
        const float *in = x + r * cols;
        float *out = y + r * cols;
        float sum = 0.0f;
        double wide = 0;
        for (int64_t c = 0; c + 1 < cols; c += 2) {
            sum += in[c] * in[c + 1];
            wide -= fmaxf(in[c], 1e-3f);
        }
        if (rows >= 2) out[0] = -sum;
        const float scale = 1.0f / sqrtf(sum / (float)cols + eps);
        for (int64_t c = 0; c < cols; ++c)
            out[c] = in[c] * scale + expf((float)wide);
    }
}
"""


def test_mutants_of_a_native_kernel_compile(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the program cc, a C compiler, is not on PATH")
    found = sites(NATIVE, "csrc/k.c", RULES, {"rms_norm"}, ())
    assert len({site.operator for site in found}) >= 10
    for number, site in enumerate(found):
        path = tmp_path / f"{number}.c"
        path.write_text(edited(NATIVE, site.edits))
        done = subprocess.run([compiler, "-std=c11", "-fsyntax-only", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, (site, done.stderr)
