"""Changed files of device code in C++: from answers to a report, and the whole way on a tiny task."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_tasks import new_store, write_task

from smith.cli import isa
from smith.environment.layers import build
from smith.grade.trial import Bench
from smith.harness.compiling_files import find_clang
from smith.records.compiled import CompiledFile, KernelFacts, TargetReport
from smith.records.compiled_files import FileFailure
from smith.records.receipt import Receipt
from smith.records.recipe import EnvironmentChoice
from smith.sandbox import make
from smith.validate.gate import not_proved
from smith.validate.gate_files import device_files, file_reports, joined, report
from smith.validate.validate import refused

GOOD = CompiledFile(path="a.hip", kernels={"k": KernelFacts(vgpr=12, occupancy=8)}, stand_ins=True)


def bad(failure: FileFailure, path: str = "b.hip") -> CompiledFile:
    return CompiledFile(path=path, failure=failure, detail="why")


@given(st.lists(st.one_of(st.none(), st.sampled_from(list(FileFailure))), max_size=5))
def test_what_could_not_be_tried_is_never_said_not_to_compile(codes: list[FileFailure | None]) -> None:
    answers = [GOOD if code is None else bad(code) for code in codes]
    found = report({"reference": answers, "base": []}, "clang")
    if found.verdict == "failed":
        assert {FileFailure.LANGUAGE, FileFailure.BACK_END, FileFailure.CRASHED} & set(codes)
    assert (found.verdict == "compiled") == (bool(codes) and set(codes) == {None})
    assert TargetReport.loads(found.dumps(), "r.json") == found
    assert found.files is not None and len(found.files.files) == len(codes)


def test_sides_stand_beside_each_other_and_launches_beside_files() -> None:
    base = CompiledFile(path="a.hip", kernels={"k": KernelFacts(vgpr=40)})
    files = report({"reference": [GOOD], "base": [base]}, "clang version 19")
    (kernel,) = files.kernels
    assert (kernel.symbol, kernel.vgpr, kernel.launches) == ("a.hip::k", 12, 0)
    assert kernel.baseline is not None and kernel.baseline.vgpr == 40
    assert isa.verdict(files) == "compiled, 1 of 1 C++ files (base 1 of 1)"
    launches = TargetReport(verdict="compiled", launches=2, compiled=2, compiler="3.9")
    both = joined(
        {"gfx942": launches}, {"gfx942": report({"reference": [bad(FileFailure.NO_KERNEL)], "base": []}, "c")}
    )
    assert both["gfx942"].verdict == "not_compilable" and both["gfx942"].launches == 2
    assert joined({"gfx942": launches}, {}) == {"gfx942": launches}
    nothing = TargetReport(verdict="not_compilable", launches=0, compiled=0)
    assert joined({"gfx942": nothing}, {"gfx942": files})["gfx942"] == files
    words = not_proved({"gfx942": files})
    assert words[0] == "that the kernels compile for a GPU, or are right on one"
    assert "1 of 1 changed files were compiled one by one with stand-in headers" in words[1] and len(words) == 2


KERNEL = """#include <hip/hip_runtime.h>
#include "common.h"
__global__ void scale(float* x) { x[threadIdx.x] *= FACTOR; }
"""


@pytest.mark.skipif(find_clang() is None, reason="no clang is on PATH or in ROCm (Debian: clang-19)")
@pytest.mark.timeout(300)
def test_base_and_reference_of_a_task_that_no_device_here_can_run(tmp_path: Path, sandbox_name: str) -> None:
    store = new_store(tmp_path / "data")
    fixed = KERNEL.replace("FACTOR;", "2 + x[0];") + "__global__ void more(float* x) { x[0] = 1; }\n"
    base = {"csrc/include/common.h": "#define FACTOR 3.0f\n", "tiny/scale.hip": KERNEL}
    written = write_task(store, {"tests/test_x.py": "def test_x(): pass\n"}, base=base, fixed={"tiny/scale.hip": fixed})
    file = written.path / "task.toml"
    text = file.read_text().replace("tiny/scale.py", "tiny/scale.hip").replace('"native"', '"hip"')
    file.write_text(text.replace('"cpu"', '"rocm"'))
    bundle = store.load(written.id)
    assert device_files(bundle) == ["tiny/scale.hip"]
    environment = build(EnvironmentChoice(name="default"), store.layout.environments)
    bench = Bench(store, make(sandbox_name), "rocm")
    found = file_reports(bench, bundle, environment, ["gfx942", "sm_90"], 1)
    amd = found["gfx942"]
    assert (amd.verdict, amd.launches) == ("compiled", 0), amd
    assert [kernel.symbol for kernel in amd.kernels] == ["tiny/scale.hip::more", "tiny/scale.hip::scale"]
    assert amd.kernels[0].baseline is None and amd.kernels[1].baseline is not None
    assert found["sm_90"].verdict == "not_compilable" and found["sm_90"].files is not None
    assert "AMD targets only" in found["sm_90"].files.files[0].detail
    receipt = refused(bundle, "rocm", "no AMD GPU", "bubblewrap", found)
    assert Receipt.loads(receipt.dumps(), "r.json") == receipt
    assert receipt.not_proved[0] == "anything: nothing was run" and len(receipt.not_proved) > 2
