"""Which kernels changed: names, languages, and what is no change of a kernel."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.mine import kernels, rules
from smith.mine.source import Source
from tests.mine.mine_upstreams import kernel

RULES = rules.load()


def read(text: str, path: str = "pkg/ops/x.py") -> Source:
    return kernels.read(textwrap.dedent(text).encode("utf-8", "surrogateescape"), path, RULES)


def changed(before: str, after: str, path: str = "pkg/ops/x.py") -> set[str]:
    """The kernels whose code changed."""
    old = read(before, path).kernels
    touched = kernels.changed(old, read(after, path).kernels)
    return set(touched) - set(kernels.text_only(touched, old))


@pytest.mark.parametrize(
    ("imports", "decorator", "language"),
    [
        ("import triton", "@triton.jit", "triton"),
        ("from triton import jit", "@jit", "triton"),
        ("import triton as tr", "@tr.autotune(configs=[], key=[])\n@tr.jit", "triton"),
        ("from .compat import triton", "@triton.jit(do_not_specialize=['n'])", "triton"),
        ("import functools, triton", "@functools.partial(triton.jit, debug=True)", "triton"),
        ("from triton.experimental import gluon", "@gluon.jit", "gluon"),
        ("import cutlass.cute as cute", "@cute.kernel", "cute"),
        ("import cuda.tile as ct", "@ct.kernel(occupancy=2)", "cutile"),
        ("import tilelang.language as T", "@T.prim_func", "tilelang"),
        ("from numba import cuda", "@cuda.jit", "numba"),
    ],
)
def test_decorators_are_resolved_through_imports(imports: str, decorator: str, language: str) -> None:
    source = read(f"{imports}\n\n{decorator}\ndef f(x):\n    pass\n")
    assert source.language == language and set(source.kernels) == {"f"}


@pytest.mark.parametrize(
    "text", ["import torch\n\n@torch.jit.script\ndef f(x):\n    pass\n", "@jit\ndef f(): pass\n", "def ("]
)
def test_other_decorators_make_no_kernel(text: str) -> None:
    assert read(text).language is None


def test_methods_and_inner_functions_have_qualified_names() -> None:
    source = read(
        """
        import cutlass.cute as cute
        import tilelang
        import tilelang.language as T

        class Norm:
            @cute.jit
            def __call__(self): ...
            @cute.kernel
            def kernel(self): ...

        @tilelang.jit
        def matmul(M):
            @T.prim_func
            def main(A): ...
            return main
        """
    )
    assert set(source.kernels) == {"Norm.__call__", "Norm.kernel", "matmul", "matmul.main"}


def test_a_definition_in_a_string_does_not_mislead() -> None:
    text = (
        'import triton\n\nTEMPLATE = """\n@triton.jit\ndef fake(x):\n    pass\n"""\n\n'
        + kernel("real").split("\n\n", 1)[1]
    )
    assert set(read(text).kernels) == {"real"}


@pytest.mark.parametrize(
    "edit",
    [
        ("    offs =", "    # where we are\n    offs ="),
        ("    offs =", '    """What it does."""\n    offs ='),
        ("tl.load(x + offs, mask=offs < n)", "tl.load(\n        x + offs,\n        mask=offs < n,\n    )"),
        ("offs = tl", "offs  =  tl"),
        ("(x, 8,", "(x, 9,"),
        ("def launch(x):", "def start(x):\n    def inner(): pass\n"),
    ],
)
def test_layout_comments_and_host_code_are_no_kernel_change(edit: tuple[str, str]) -> None:
    before = kernel()
    after = before.replace(*edit)
    assert after != before and changed(before, after) == set()


@pytest.mark.parametrize(
    "edit",
    [
        ("+ 1", "+ 2"),
        ("+ 1", "- 1"),
        ("@triton.jit\n", "@triton.jit(noinline=True)\n"),
        ("n, BLOCK", "BLOCK"),
        ("< n", "<= n"),
    ],
)
def test_code_signature_and_decorators_are(edit: tuple[str, str]) -> None:
    assert changed(kernel(), kernel().replace(*edit)) == {"add"}


def test_a_comment_touches_a_kernel_and_not_its_code() -> None:
    before, after = kernel(), kernel().replace("    offs", "    # the offsets\n    offs")
    touched = kernels.changed(read(before).kernels, read(after).kernels)
    assert list(touched) == kernels.text_only(touched, read(before).kernels) == ["add"]


def test_added_removed_and_moved_within_the_file() -> None:
    one, two = kernel("one"), kernel("two").split("\n\n\n", 1)[1]
    head, body = one.split("\n\n\n", 1)
    assert changed(one, f"{one}\n\n{two}") == {"two"}
    assert changed(f"{one}\n\n{two}", one) == {"two"}
    assert changed(f"{one}\n\n{two}", f"{head}\n\n\n{two}\n\n{body}") == set()


@given(st.integers(0, 9), st.integers(0, 9))
def test_a_change_is_seen_exactly_where_the_code_differs(one: int, other: int) -> None:
    assert changed(kernel(value=one), kernel(value=other)) == ({"add"} if one != other else set())


HIP = """
#include <hip/hip_runtime.h>
namespace ops {
// __global__ void ghost() {}
template <typename T, int N = (1 > 0)>
__global__ void __launch_bounds__(256) scale(T* x, float s) {
  if (threadIdx.x < N) { x[threadIdx.x] *= s; }
}
struct Vec {
  __device__ float sum() const { return a + b; }
  float a, b;
};
void launch(float* x) { scale<float><<<1, 64>>>(x, 2.0f); const char* s = "}{"; }
}
"""


def test_device_functions_of_hip() -> None:
    source = read(HIP, "csrc/scale.cu")
    assert source.language == "hip"
    assert set(source.kernels) == {"ops::scale", "ops::Vec::sum"}


@pytest.mark.parametrize(
    ("edit", "names"),
    [
        (("*= s", "*= 2 * s"), {"ops::scale"}),
        (("2.0f", "3.0f"), set()),
        (("a + b", "a  +  /* the other */ b"), set()),
        (("int N =", "int M = 4, int N ="), {"ops::scale"}),
        (("a + b", "a - b"), {"ops::Vec::sum"}),
    ],
)
def test_changes_of_hip(edit: tuple[str, str], names: set[str]) -> None:
    assert changed(HIP, HIP.replace(*edit), "csrc/scale.cu") == names


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("k.cu", "__global__ void f(int* x) { *x = 1; }", "cuda"),
        ("k.cu", "void launch() { for (;;) {} }", None),
        ("csrc/k.hip", "__device__ int f() { return 1; }", "hip"),
        ("csrc/k.c", 'extern "C" { void f(float* x, int n) { for (int i = 0; i < n; i++) x[i] = 0; } }', "native"),
        ("csrc/k.c", "int f(void) { return 1; }", None),
        ("csrc/k.cpp", "#include <cuda_runtime.h>\nvoid f() { for (;;) {} }", None),
        ("app/k.c", "void f(float* x, int n) { for (int i = 0; i < n; i++) x[i] = 0; }", None),
        ("k.cuh", "#include <cute/tensor.hpp>\nCUTE_DEVICE void f() { }", "cute"),
        ("k.hpp", "#include <ck_tile/core.hpp>\nvoid f() { ck_tile::launch_kernel(); }", "ck"),
        ("k.cl", "__kernel void f(__global float* x) { }", "opencl"),
        ("k.metal", "kernel void f(device float* x) { }", "metal"),
        ("k.s", ".globl f\nf:\n  s_endpgm\n", "asm"),
        ("k.txt", "__global__ void f() { }", None),
    ],
)
def test_languages_of_c_like_files(path: str, text: str, language: str | None) -> None:
    assert read(text, path).language == language


@given(st.text(alphabet="{}();<>\"'#\\/*\n :=abAB_", max_size=120))
def test_no_text_breaks_the_scanners(text: str) -> None:
    read("__global__ void f() {" + text, "k.cu")
    read("import triton\n@triton.jit\ndef f():\n    " + text, "k.py")


def test_binary_and_absent_files_hold_none() -> None:
    assert kernels.read(b"\0" * 10, "k.cu", RULES).language is None
    assert kernels.read(None, "k.cu", RULES).language is None
    assert kernels.read(b"x" * (RULES.limits.largest_source + 1), "k.py", RULES).language is None


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        (
            "csrc/ck/gemm.cu",
            "#include <ck_tile/core.hpp>\n"
            'void load_module(const char* name) { auto f = fopen(name, "r"); }\n'
            "int get_num_cu() { return 304; }\n"
            "at::Tensor gemm(at::Tensor a) { ck_tile::launch_kernel(); return a; }\n"
            "void instance() { ck::tensor_operation::device::run(); }\n"
            "CK_TILE_DEVICE float scale(float x) { return x * 2; }\n",
            {"instance", "scale"},
        ),
        (
            "csrc/cpu/norm.cpp",
            "void norm(float* x, int n) { for (int i = 0; i < n; i++) x[i] *= 2; }\n"
            'std::string run(const std::string& c) { for (auto x : c) popen(c.c_str(), "r"); return c; }\n'
            "std::ostream& operator<<(std::ostream& o, int n) { for (;n--;) o << n; return o; }\n",
            {"norm"},
        ),
    ],
)
def test_host_code_beside_kernels_is_none(path: str, text: str, names: set[str]) -> None:
    assert set(read(text, path).kernels) == names
