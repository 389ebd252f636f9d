"""What is read out of machine code, and how many waves fit; LLVM, which compiles it, is the judge of the latter."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smith.device.compiler import amd, nvidia
from smith.device.compiler.failures import OutOfResources, reason_of
from smith.device.compiler.kernels import ImportFailed, NotFound

ASSEMBLY = """\
	global_load_dwordx4 v[0:3], v4, s[2:3]
	buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen
	global_load_dwordx2 v[0:1], v4, s[2:3]
	v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
	v_smfmac_f32_16x16x32_f16 a[0:3], v[0:1], v[2:5], v6
; codeLenInByte = 1292
    .agpr_count:     16
    .private_segment_fixed_size: 24
    .sgpr_count:     19
    .sgpr_spill_count: 1
    .vgpr_count:     148
    .vgpr_spill_count: 6
"""


def test_facts_of_amd_assembly() -> None:
    found = amd.facts(ASSEMBLY, "gfx942", lds_bytes=8192, lds_limit=65536, waves=4)
    assert found == {
        "vgpr": 148,
        "sgpr": 19,
        "agpr": 16,
        "vgpr_spills": 6,
        "sgpr_spills": 1,
        "scratch_bytes": 24,
        "code_bytes": 1292,
        "matrix_instructions": 2,
        "wide_loads": 2,
        "lds_bytes": 8192,
        "occupancy": 3,
    }


def test_what_assembly_does_not_say_is_not_known() -> None:
    found = amd.facts("", "gfx942", lds_bytes=0, lds_limit=65536, waves=4)
    assert found["vgpr"] is None and "occupancy" not in found


@pytest.mark.parametrize(
    ("registers", "waves", "lds", "expected"),
    [
        (64, 4, 0, 8),  # 512 / 64
        (65, 4, 0, 7),  # in steps of 8
        (128, 4, 0, 4),
        (256, 8, 0, 2),
        (512, 4, 0, 1),
        (64, 4, 65536, 1),  # one workgroup has all LDS
        (64, 4, 32768, 2),
        (64, 4, 22000, 2),
        (64, 1, 65536, 1),  # one wave of one workgroup, on one of the SIMDs
        (64, 16, 0, 8),  # two workgroups of 16 waves
        (72, 16, 0, 4),  # seven waves a SIMD would fit, a second workgroup does not
    ],
)
def test_occupancy_on_cdna3(registers: int, waves: int, lds: int, expected: int) -> None:
    found = amd.occupancy("gfx942", registers=registers, scalars=20, lds_bytes=lds, lds_limit=65536, waves=waves)
    assert found == expected


def test_gfx950_has_more_lds() -> None:
    sizes = {"registers": 64, "scalars": 20, "lds_bytes": 65536, "waves": 4}
    assert amd.occupancy("gfx950", lds_limit=160 << 10, **sizes) == 2


@given(
    registers=st.integers(1, 511),
    scalars=st.integers(1, 102),
    lds=st.integers(0, 65535),
    waves=st.sampled_from([1, 2, 4, 8, 16]),
)
def test_more_of_anything_never_fits_more_waves(registers: int, scalars: int, lds: int, waves: int) -> None:
    def fits(registers: int, scalars: int, lds: int) -> int:
        return amd.occupancy(
            "gfx942", registers=registers, scalars=scalars, lds_bytes=lds, lds_limit=65536, waves=waves
        )

    here = fits(registers, scalars, lds)
    assert 0 <= here <= 8
    assert fits(registers + 1, scalars, lds) <= here
    assert fits(registers, scalars + 1, lds) <= here
    assert fits(registers, scalars, lds + 1) <= here


COMPARE = """
import re, sys
import torch, triton
from smith.device.interpreter import find_target, stand_in
stand_in("gfx942")
import many
from triton.compiler import ASTSource
target = triton.runtime.driver.active.get_current_target()
for n, warps in ((64, 1), (2048, 1), (4096, 1), (4096, 2)):
    source = ASTSource(many.many, {"x": "*fp32", "N": "constexpr"}, {"N": n})
    kernel = triton.compile(source, target=target, options={"num_warps": warps})
    text = kernel.asm["amdgcn"]
    from smith.device.compiler import amd
    found = amd.facts(text, "gfx942", lds_bytes=kernel.metadata.shared, lds_limit=65536, waves=warps)
    print(re.search(r"; Occupancy: (\\d+)", text).group(1), found["occupancy"], found["vgpr"], kernel.metadata.shared)
"""
MANY = """
import triton, triton.language as tl
@triton.jit
def many(x, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(x + N + i)
    tl.store(x + i, a * b)
    tl.store(x + N + i, a + b)
"""


def test_occupancy_is_what_llvm_says_of_the_same_kernel(tmp_path: Path) -> None:
    """Of kernels without LDS: what Triton asks for at launch LLVM does not know."""
    pytest.importorskip("triton")
    (tmp_path / "many.py").write_text(MANY)
    done = subprocess.run(
        [sys.executable, "-c", COMPARE],
        capture_output=True,
        text=True,
        env={
            "PYTHONPATH": f"{Path(__file__).parents[2]}:{tmp_path}",
            "TRITON_CACHE_DIR": str(tmp_path / "cache"),
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
        },
    )
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines() if re.match(r"\d", line)]
    assert len(rows) == 4 and len({row[0] for row in rows}) >= 2, rows
    assert all(shared == 0 and llvm == ours for llvm, ours, _, shared in rows), rows


def test_facts_of_ptx() -> None:
    ptx = (
        "\tld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%rd1];\n\t@%p1 ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%rd1];\n"
        "\tld.global.b32 %r1, [%rd1];\n\twgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {};\n"
        "\tmma.sync.aligned x;\n"
    )
    found = nvidia.facts(ptx, None, shared_bytes=1024, shared_limit=227 << 10, threads=2048, waves=4)
    assert found == {"matrix_instructions": 2, "wide_loads": 2, "lds_bytes": 1024}


@pytest.mark.parametrize(
    ("registers", "waves", "shared", "expected"),
    [(32, 8, 0, 16), (64, 4, 0, 8), (255, 4, 0, 2), (32, 4, 100 << 10, 2), (168, 8, 0, 2), (32, 1, 0, 8)],
)
def test_warps_per_scheduler_on_sm_90(registers: int, waves: int, shared: int, expected: int) -> None:
    found = nvidia.occupancy(
        registers=registers, shared_bytes=shared, shared_limit=227 << 10, threads=2048, waves=waves
    )
    assert found == expected


def test_code_size_of_what_is_no_elf_file_is_not_known() -> None:
    assert nvidia.code_bytes(b"MZ" * 100) is None
    assert nvidia.code_bytes(b"") is None


class CompilationError(Exception):
    """As Triton's is called."""


def test_reasons_are_told_by_class() -> None:
    def caused() -> Exception:
        try:
            raise CompilationError("at 3:4: no such thing")
        except CompilationError as error:
            outer = RuntimeError("wrapped")
            outer.__cause__ = error
            return outer

    cases: list[tuple[BaseException, str]] = [
        (NotFound("m holds no jit function k"), "not_found"),
        (ImportFailed("m.py: no"), "import_failed"),
        (OutOfResources("131072 bytes"), "out_of_resources"),
        (caused(), "language"),
        (KeyError("keyword argument x was specified but unrecognised"), "binding"),
        (TypeError("missing a required argument"), "binding"),
        (RuntimeError("PassManager::run failed"), "back_end"),
    ]
    assert [reason_of(error)[0] for error, _ in cases] == [code for _, code in cases]
    assert reason_of(RuntimeError("unsupported function"), compiling=False)[0] == "language"
    assert "no such thing" in reason_of(caused())[1]
    assert len(reason_of(RuntimeError("x" * 5000))[1]) <= 620
