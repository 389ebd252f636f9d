"""Device code in C++ compiled by the clang that is here, in the sandbox, with stand-in headers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness_bench import Bench

from smith.device.compiler.clang import plain_name, reason_of
from smith.harness.compiling_files import CompiledFiles, compile_files, find_clang
from smith.harness.place import Place
from smith.harness.stage import COMPILE, Stage
from smith.records.compiled_files import FileFailure
from smith.sandbox import Sandbox

CLANG = find_clang()
here = pytest.mark.skipif(CLANG is None, reason="no clang is on PATH or in ROCm (Debian: clang-19)")
pytestmark = pytest.mark.timeout(600)

SUM = """
    #include <hip/hip_runtime.h>
    #include <hip/hip_fp16.h>
    #include <hip/hip_bf16.h>
    #include "shared.h"

    namespace {
    __device__ float block_sum(float value)
    {
        __shared__ float partial[4];
        for (int offset = 32; offset > 0; offset /= 2) value += __shfl_down(value, offset);
        if (threadIdx.x % 64 == 0) partial[threadIdx.x / 64] = value;
        __syncthreads();
        float total = 0;
        for (float part : partial) total += part;
        return total;
    }
    }

    __global__ __launch_bounds__(256) void row_sums(const __half* x, float* y, int n)
    {
        float sum = 0;
        for (int c = threadIdx.x; c < n; c += blockDim.x) sum += __half2float(x[blockIdx.x * n + c]);
        y[blockIdx.x] = WEIGHT * expf(block_sum(sum));
    }

    template <typename T> __global__ void copy(const T* from, T* to) { to[threadIdx.x] = from[threadIdx.x]; }
    __global__ void wide(const float4* from, float4* to) { to[threadIdx.x] = from[threadIdx.x]; }
    using f16x4 = __attribute__((__vector_size__(4 * sizeof(_Float16)))) _Float16;
    using f32x4 = __attribute__((__vector_size__(4 * sizeof(float)))) float;
    __global__ void product(const f16x4* a, f32x4* c)
    {
        c[threadIdx.x] = __builtin_amdgcn_mfma_f32_16x16x16f16(a[threadIdx.x], a[threadIdx.x], c[threadIdx.x], 0, 0, 0);
    }
    __global__ void calling(float* x) { x[0] = tanhf(x[0]); }

    void launch(const __half* x, float* y, hipStream_t stream)
    {
        row_sums<<<1, 256, 0, stream>>>(x, y, 3);
        hipLaunchKernelGGL(copy<float>, dim3(1), dim3(64), 0, stream, y, y);
        copy<__hip_bfloat16><<<1, 64>>>(nullptr, nullptr);
    }
"""
FILES = {
    "csrc/sum.hip": SUM,
    "csrc/include/shared.h": "#define WEIGHT 2.0f\n",
    "csrc/torch.cu": "#include <hip/hip_runtime.h>\n#include <torch/extension.h>\n__global__ void k() {}\n",
    "csrc/more.cu": "#include <hip/hip_runtime.h>\n__global__ void k(int* x) { hipNobodyKnows(x); }\n",
    "csrc/typo.cu": "#include <hip/hip_runtime.h>\n__global__ void k(int* x) { x[0] = 1 }\n",
    "csrc/template.h": "#include <hip/hip_runtime.h>\ntemplate <int N> __global__ void k(int* x) { x[0] = N; }\n",
    "csrc/device.h": "#include <hip/hip_runtime.h>\n__device__ int one() { return 1; }\n",
    "csrc/greedy.cu": "#include <hip/hip_runtime.h>\n"
    "__global__ void k(int* x) { __shared__ int s[40000]; s[threadIdx.x] = x[0]; __syncthreads(); x[1] = s[x[2]]; }\n",
    "csrc/slow.cu": "#include <hip/hip_runtime.h>\n"
    "template <int N> struct S { static constexpr int v = S<N - 1>::v + S<N - 2>::v; };\n"
    "constexpr long loop(long n) { long s = 0; while (n) s += n--; return s; }\nstatic_assert(loop(1L << 60));\n",
}
ASKED = [name for name in FILES if name != "csrc/include/shared.h"]


@pytest.fixture(scope="module")
def done(bubblewrap: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompiledFiles]:
    with Place.create(tmp_path_factory.mktemp("files") / "work") as place:
        bench = Bench(bubblewrap, place)
        for name, text in FILES.items():
            bench.write(name, text)
        stage = Stage(bench.sandbox, place, bench.environment, bench.recipe, COMPILE)
        yield compile_files(stage, ASKED, ["gfx942", "gfx950"], 2, clang=CLANG, file_s=60)


@here
def test_kernels_and_what_their_machine_code_says(done: CompiledFiles) -> None:
    (found,) = [answer for answer in done.answers["gfx942"] if answer.path == "csrc/sum.hip"]
    assert found.failure is None, found.detail
    assert found.stand_ins and "clang" in done.compiler
    names = {"row_sums", "copy<float>", "copy<__hip_bfloat16>", "wide", "product", "calling"}
    assert set(found.kernels) == names
    sums = found.kernels["row_sums"]
    assert (sums.lds_bytes, sums.waves, sums.vgpr_spills, sums.sgpr_spills, sums.scratch_bytes) == (16, 4, 0, 0, 0)
    assert sums.vgpr and sums.sgpr and sums.code_bytes and sums.occupancy == 8
    assert found.kernels["wide"].wide_loads == 1 and found.kernels["copy<float>"].wide_loads == 0
    assert found.kernels["product"].matrix_instructions == 1
    # What the device library would do is not known, and so neither is what the kernel takes.
    assert found.kernels["calling"].vgpr is None and found.kernels["calling"].code_bytes is None


@here
def test_each_file_that_gives_no_kernel_has_its_typed_reason(done: CompiledFiles) -> None:
    found = {answer.path: (answer.failure, answer.detail) for answer in done.answers["gfx942"]}
    assert found["csrc/torch.cu"] == (FileFailure.MISSING_HEADER, "torch/extension.h")
    for path, failure, words in (
        ("csrc/more.cu", FileFailure.STAND_IN, "hipNobodyKnows"),
        ("csrc/typo.cu", FileFailure.LANGUAGE, "expected ';'"),
        ("csrc/template.h", FileFailure.NO_KERNEL, "templates"),
        ("csrc/device.h", FileFailure.NO_KERNEL, "device functions"),
        ("csrc/greedy.cu", FileFailure.BACK_END, "local memory"),
    ):
        assert found[path][0] is failure, found[path]
        assert words in found[path][1]
    assert found["csrc/slow.cu"][0] in (FileFailure.TIMEOUT, FileFailure.STAND_IN)
    says = {path for path, (failure, _) in found.items() if failure is not None and failure.says_something}
    assert says == {"csrc/typo.cu", "csrc/greedy.cu"}


@here
def test_a_target_that_the_compiler_does_not_know_is_not_tried_or_compiled(done: CompiledFiles) -> None:
    answers = done.answers["gfx950"]
    tried = {answer.failure is FileFailure.NOT_TRIED for answer in answers}
    assert len(answers) == len(ASKED) and len(tried) == 1
    if tried == {True}:
        assert all("gfx950" in answer.detail for answer in answers)


def test_without_a_compiler_nothing_is_said_of_a_file(bench: Bench) -> None:
    stage = Stage(bench.sandbox, bench.place, bench.environment, bench.recipe, COMPILE)
    done = compile_files(stage, ["a.hip"], ["gfx942"], 1, clang=None)
    (answer,) = done.answers["gfx942"]
    assert answer.failure is FileFailure.NOT_TRIED and "no clang" in answer.detail


def test_the_newest_clang_is_found_by_name(tmp_path: Path) -> None:
    assert find_clang(str(tmp_path)) is None
    for name in ("clang", "clang-9", "clang-19", "clang-format-20"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert find_clang(str(tmp_path)) == str(tmp_path / "clang-19")
    (tmp_path / "amdclang++").write_text("#!/bin/sh\n")
    (tmp_path / "amdclang++").chmod(0o755)
    assert find_clang(str(tmp_path)) == str(tmp_path / "amdclang++")


def test_what_clang_says_is_told_apart_by_kind() -> None:
    semantic = "a.hip:3:4: error: use of undeclared identifier 'x' [Semantic Issue]\n1 error generated.\n"
    assert reason_of(semantic, 1, stand_ins=True)[0] == "stand_in"
    assert reason_of(semantic, 1, stand_ins=False) == ("language", "a.hip:3:4: use of undeclared identifier 'x'")
    parse = "a.hip:3:4: error: expected ';' [Parse Issue]\n"
    assert reason_of(parse, 1, stand_ins=True)[0] == "language"
    assert reason_of(parse + semantic, 1, stand_ins=True)[0] == "stand_in"
    back = "error: a.hip:2:17: in function k: local memory (160000) exceeds limit [Backend Issue]\n"
    assert reason_of(f"a.hip:1:1: {back}", 1, stand_ins=True)[0] == "back_end"
    foreign = "a.hip:1:1: error: invalid input constraint 'h' in asm [Inline Assembly Issue]\n"
    assert reason_of(foreign, 1, stand_ins=True)[0] == "stand_in"
    assert reason_of("", -11, stand_ins=True)[0] == "crashed"
    missing = semantic + "a.hip:1:10: fatal error: 'ck/ck.hpp' file not found [Lexical or Preprocessor Issue]\n"
    assert reason_of(missing, 1, stand_ins=True) == ("missing_header", "ck/ck.hpp")


def test_names_are_those_of_the_source() -> None:
    assert plain_name("_Z1kPK6__halfPfi") == "k"
    assert plain_name("_Z2tkIfEvPT_") == "tk<float>"
    assert plain_name("_ZN12_GLOBAL__N_11kEv") == "(anonymous namespace)::k"
    assert plain_name("plain") == "plain"
    assert plain_name("_Z7productPKDv4_DF16_PDv4_f") == "product"
