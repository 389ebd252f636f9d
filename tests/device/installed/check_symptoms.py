"""The same symptoms with the device installed, and what needs no comparison."""

from __future__ import annotations

import importlib.util
import re
import threading
import warnings
from pathlib import Path
from typing import Any

import kernels
import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import smith.device.interpreter as interpreter
from smith.device.interpreter import NotInterpretable, launches, libdevice, refusals, versions


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run_float_argument", 0.5),
        ("run_loop_variable", 6),
        ("run_library_function", 0.4621),
        ("run_integer_mask", [1.0, 1.0, 1.0, 0.0]),
        ("run_wrong_assumption", 3),
        ("run_aliased_builtin", 1.0),
        ("run_bfloat16_sum", [3.5] * 4),
        ("run_unknown_key", 4),
        ("run_driver", "gfx942"),
        ("run_cuda_factory", "cpu"),
        ("run_cuda_available", True),
        ("run_cuda_generator", "cpu"),
        ("run_integer_histc", [1, 2, 0, 1]),
        ("run_module_cuda", "cpu"),
        ("run_stream", True),
        ("run_memory", True),
    ],
)
def test_symptom(name: str, expected: Any) -> None:
    assert getattr(kernels, name)() == expected


def test_autotuner_takes_the_first_configuration_left_after_pruning() -> None:
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    kernels.tuned(3)[(1,)](out, 5)
    assert out.item() == 4


def test_device_queries_answer_for_the_target() -> None:
    properties = torch.cuda.get_device_properties(0)
    assert (properties.gcnArchName.split(":")[0], properties.multi_processor_count) == ("gfx942", 304)
    assert torch.version.hip is not None
    assert torch.accelerator.current_accelerator().type == "cuda"
    assert torch.zeros(1).is_cuda


def test_install_again_does_nothing_and_another_target_is_refused() -> None:
    before = torch.empty
    interpreter.install("gfx942")
    assert torch.empty is before
    with pytest.raises(RuntimeError, match="one process has one target"):
        interpreter.install("gfx950")
    with pytest.raises(interpreter.target.UnknownTarget, match="gfx942"):
        interpreter.install("gfx0")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        out = torch.zeros(grad.shape, device="cuda")
        out += torch.full_like(grad, 2.0, device=torch.device("cuda", 0))
        return out * grad


def test_cuda_is_cpu_inside_backward_and_in_threads() -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    thread = threading.Thread(target=lambda: Doubled.apply(x).sum().backward())
    thread.start()
    thread.join()
    assert x.grad is not None and x.grad.tolist() == [2.0] * 3


def test_default_device_and_device_context() -> None:
    with torch.device("cuda"):
        assert torch.empty(1).device.type == "cpu"
    torch.set_default_device("cuda")
    assert torch.empty(1).device.type == "cpu"
    torch.set_default_device("cpu")


def test_a_host_copy_is_a_copy() -> None:
    x = torch.zeros(2, device="cuda")
    host, moved = x.cpu(), x.to("cpu")
    x += 1
    assert host.tolist() == moved.tolist() == [0.0, 0.0]
    assert x.cuda() is x


def test_nested_helpers_and_combine_functions_are_counted() -> None:
    launches.reset()
    out = torch.zeros(8, device="cuda")
    kernels.nested[(2,)](torch.ones(8, device="cuda"), out, 4)
    kernels.combined[(1,)](torch.arange(4.0), out, 4)
    counts = {key.split("::")[1]: value for key, value in launches.snapshot().items()}
    assert counts["nested"] == {
        "launches": 1,
        "calls": 0,
        "programs": 2,
        "loads": 2,
        "stores": 2,
        "atomics": 2,
    }
    assert counts["twice"] == {
        "launches": 0,
        "calls": 2,
        "programs": 0,
        "loads": 0,
        "stores": 0,
        "atomics": 0,
    }
    assert counts["maximum"]["calls"] == 1
    assert all(key.startswith("kernels.py::") for key in launches.snapshot())
    launches.reset()
    assert launches.snapshot() == {}


def test_inline_assembly_is_refused() -> None:
    with pytest.raises(NotInterpretable, match=r"^smith: not interpretable: inline assembly"):
        kernels.run_assembly()


def test_cuda_graphs_are_refused() -> None:
    with pytest.raises(NotInterpretable, match=r"^smith: not interpretable: CUDA graphs"):
        torch.cuda.CUDAGraph()


def test_gluon_is_refused() -> None:
    gluon = pytest.importorskip("triton.experimental.gluon", reason="this Triton has no Gluon")

    @gluon.jit
    def kernel(out):
        pass

    with pytest.raises(NotInterpretable, match=r"^smith: not interpretable: .*Gluon"):
        kernel[(1,)](torch.zeros(1))


def test_an_absent_kernel_language_is_refused_but_may_be_optional() -> None:
    assert importlib.util.find_spec("tilelang") is None
    with pytest.raises(ImportError, match=r"^smith: not interpretable: TileLang"):
        import tilelang  # noqa: F401


def test_grid_function_gets_plain_numbers_and_may_answer_with_a_list() -> None:
    out = torch.zeros(1, device="cuda")
    seen: list[Any] = []
    kernels.float_argument[lambda meta: seen.append(meta["eps"]) or [1]](out, 0.5)
    assert seen == [0.5]


def test_no_numpy_warnings_from_kernels() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = torch.zeros(4, device="cuda")
        kernels.library_function[(1,)](torch.full((4,), float("inf")), out, 4)


def test_the_prelude_ran_before_collection() -> None:
    import made_by_prelude

    assert made_by_prelude.name == "smith_prelude"
    assert made_by_prelude.cuda


@triton.jit
def block_pointer(x, out, N: tl.constexpr):
    pointer = tl.make_block_ptr(x, (N,), (1,), (0,), (N,), (0,))
    tl.store(out + tl.arange(0, N), tl.load(pointer, boundary_check=(0,)))


def test_block_pointers_belong_to_the_triton_of_their_era() -> None:
    out = torch.zeros(4, device="cuda")
    if versions.triton_version() >= (3, 9):
        with pytest.raises(Exception, match=r"(?i)block pointer"):
            block_pointer[(1,)](torch.ones(4), out, 4)
    else:
        block_pointer[(1,)](torch.ones(4), out, 4)
        assert np.array_equal(out.numpy(), np.ones(4))


def test_a_library_symbol_is_computed_or_refused() -> None:
    computed = 0
    for vendor in ("cuda", "hip"):
        source = Path(importlib.import_module(f"triton.language.extra.{vendor}.libdevice").__file__ or "").read_text()
        for symbol in set(re.findall(r"\"((?:__nv|__ocml|__ockl)_\w+)\"", source)):
            try:
                libdevice.function_of(symbol)
            except NotInterpretable as error:
                assert symbol in str(error)
            else:
                computed += 1
    assert computed > 200


@pytest.mark.parametrize(
    ("symbol", "arguments", "expected"),
    [
        ("__nv_rsqrtf", [4.0], 0.5),
        ("__ocml_erf_f32", [0.5], 0.5204999),
        ("__nv_fmaf_rn", [2.0, 3.0, 1.0], 7.0),
        ("__nv_roundf", [-2.5], -3.0),
        ("__ocml_rint_f32", [2.5], 2.0),
        ("__nv_fast_fdividef", [1.0, 4.0], 0.25),
        ("__ocml_lgamma_f32", [3.0], 0.6931472),
        ("__nv_isnanf", [float("nan")], 1.0),
    ],
)
def test_library_functions(symbol: str, arguments: list[float], expected: float) -> None:
    result = libdevice.function_of(symbol)(*(np.array([value], dtype=np.float32) for value in arguments))
    assert float(result[0]) == pytest.approx(expected, rel=1e-6)


def test_an_operator_for_cuda_alone_runs_here() -> None:
    @torch.library.custom_op("smith_checks::doubled", mutates_args=(), device_types="cuda")
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert doubled(torch.ones(2, device="cuda")).tolist() == [2.0, 2.0]


def test_autocast_for_cuda_is_autocast_for_the_cpu() -> None:
    x = torch.ones(2, 2, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        assert torch.is_autocast_enabled("cuda")


def test_a_refusal_is_found_behind_other_errors_but_not_behind_a_handled_one() -> None:
    try:
        try:
            raise NotInterpretable("x")
        except NotInterpretable as error:
            raise ValueError("outer") from error
    except ValueError as error:
        assert refusals.cause(error) is error.__cause__
    assert refusals.cause(ValueError("own")) is None
