"""Kernels with one fault each. A comment ``# here`` marks the line that the sanitizer must name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

BLOCK = 32
OLD = tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 9)
"""Whether this version still has block pointers."""


@triton.jit
def copy_unmasked(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)  # here: load
    tl.store(y_ptr + offsets, x, mask=offsets < n)


@triton.jit
def copy_off_by_one(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, x, mask=offsets <= n)  # here: store


@triton.jit
def shift_left(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets - 1, mask=offsets < n, other=0.0)  # here: load
    tl.store(y_ptr + offsets, x, mask=offsets < n)


@triton.jit
def row_beyond(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    row = tl.program_id(0) + 1
    x = tl.load(x_ptr + row * stride + columns, mask=columns < n, other=0.0)  # here: load
    tl.store(y_ptr + tl.program_id(0) * stride + columns, x, mask=columns < n)


@triton.jit
def fetch(ptr, offsets, mask):
    return tl.load(ptr + offsets, mask=mask, other=0.0)  # here: load


@triton.jit
def copy_nested(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, fetch(x_ptr, offsets, offsets < n + 3), mask=offsets < n)


@triton.jit
def row_sum(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + offsets).to(tl.float32)  # here: load
    tl.store(y_ptr + row, tl.sum(total, axis=0))


@triton.jit
def descriptor_too_tall(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [rows + 1, columns], [columns, 1], [1, BLOCK])
    row = tl.program_id(0)
    x = source.load([row, 0])  # here: load
    tl.store(y_ptr + row * BLOCK + tl.arange(0, BLOCK), tl.reshape(x, [BLOCK]))


@triton.jit
def descriptor_store(y_ptr, rows, columns, BLOCK: tl.constexpr):
    target = tl.make_tensor_descriptor(y_ptr, [rows + 1, columns], [columns, 1], [1, BLOCK])
    target.store([tl.program_id(0), 0], tl.full([1, BLOCK], 1.0, y_ptr.dtype.element_ty))  # here: store


@triton.jit
def block_pointer_unchecked(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    source = tl.make_block_ptr(x_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    target = tl.make_block_ptr(y_ptr, (n,), (1,), (start,), (BLOCK,), (0,))
    x = tl.load(source)  # here: load
    tl.store(target, x, boundary_check=(0,))


@triton.jit
def add_past_the_end(y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + offsets, 1.0, mask=offsets < n + 1)  # here: atomic


@triton.jit
def lock_beyond(lock_ptr, n):
    tl.atomic_cas(lock_ptr + n, 0, 1)  # here: atomic


@triton.jit
def total_without_atomic(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(y_ptr, tl.load(y_ptr).to(tl.float32) + tl.sum(x, axis=0))  # here: store


@triton.jit
def overlapping_tiles(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(y_ptr + offsets, x + tl.program_id(0), mask=offsets < n)  # here: store


@triton.jit
def counted_and_racing(y_ptr, count_ptr):
    tl.store(y_ptr, tl.program_id(0))  # here: store
    tl.atomic_add(count_ptr, 1)


@triton.jit
def add_to_output(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)  # here: load
    tl.store(y_ptr + offsets, y + tl.load(x_ptr + offsets, mask=mask, other=0.0), mask=mask)


@triton.jit
def copy_all(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)  # here: load
    tl.store(y_ptr + offsets, x, mask=offsets < n)


@triton.jit
def add_atomically(y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + offsets, 1.0, mask=offsets < n)  # here: atomic


def grid(n: int) -> tuple[int]:
    return (triton.cdiv(n, BLOCK),)


def elementwise(kernel: Any, dtype: torch.dtype) -> None:
    x = torch.ones(50).to(dtype)
    kernel[grid(50)](x, torch.zeros(50).to(dtype), 50, BLOCK=BLOCK)


def unwritten_tail(dtype: torch.dtype) -> None:
    """A buffer of which a first kernel wrote all but the last element."""
    buffer = torch.empty(50, dtype=dtype, device="cuda")
    copy_all[grid(49)](torch.ones(50).to(dtype), buffer, 49, BLOCK=BLOCK)
    copy_all[grid(50)](buffer, torch.zeros(50).to(dtype), 50, BLOCK=BLOCK)


def host_wrote_half() -> None:
    buffer = torch.empty(64, dtype=torch.float32, device="cuda")
    buffer[:32] = torch.randn(32)
    copy_all[grid(64)](buffer, torch.zeros(64), 64, BLOCK=BLOCK)


def never_written(make: Callable[[], torch.Tensor]) -> None:
    buffer = make()
    copy_all[grid(buffer.numel())](buffer, torch.zeros_like(buffer), buffer.numel(), BLOCK=BLOCK)


def neighbours() -> None:
    """Rows of one tensor just before another: where the access lands is an argument too."""
    whole = torch.ones(3, BLOCK)
    row_beyond[(3,)](whole, torch.zeros(3, BLOCK), BLOCK, BLOCK, BLOCK=BLOCK)


def zero_size() -> None:
    copy_unmasked[(1,)](torch.ones(0), torch.zeros(BLOCK), BLOCK, BLOCK=BLOCK)


PLANTED: dict[str, tuple[str, Callable[[], Any], str, str]] = {}
"""By name: the kind, how to run it, the kernel that is launched, and the function that holds the line."""


def plant(name: str, kind: str, run: Callable[[], Any], kernel: str, function: str | None = None) -> None:
    PLANTED[name] = (kind, run, kernel, function or kernel)


FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2)

for dtype in FLOATS:
    short = str(dtype).rpartition(".")[2]
    plant(f"unmasked-{short}", "out_of_bounds_read", lambda d=dtype: elementwise(copy_unmasked, d), "copy_unmasked")
    plant(
        f"past_end-{short}", "out_of_bounds_write", lambda d=dtype: elementwise(copy_off_by_one, d), "copy_off_by_one"
    )
    plant(f"negative-{short}", "out_of_bounds_read", lambda d=dtype: elementwise(shift_left, d), "shift_left")
    plant(
        f"reduction-{short}",
        "out_of_bounds_read",
        lambda d=dtype: row_sum[(3,)](torch.ones(3, 50).to(d), torch.zeros(3), 3, 50, BLOCK=BLOCK),
        "row_sum",
    )
    plant(
        f"bare-{short}",
        "uninitialised_read",
        lambda d=dtype: never_written(lambda: torch.empty(48, dtype=d, device="cuda")),
        "copy_all",
    )
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    short = str(dtype).rpartition(".")[2]
    plant(f"bare_tail-{short}", "uninitialised_read", lambda d=dtype: unwritten_tail(d), "copy_all")
    plant(
        f"total-{short}",
        "race",
        lambda d=dtype: total_without_atomic[(4,)](torch.ones(100).to(d), torch.zeros(1).to(d), 100, BLOCK=BLOCK),
        "total_without_atomic",
    )

plant("nested", "out_of_bounds_read", lambda: elementwise(copy_nested, torch.float32), "copy_nested", "fetch")
plant("neighbour", "out_of_bounds_read", neighbours, "row_beyond")
plant("zero_size", "out_of_bounds_read", zero_size, "copy_unmasked")
plant(
    "descriptor_load",
    "out_of_bounds_read",
    lambda: descriptor_too_tall[(4,)](torch.ones(3, BLOCK), torch.zeros(4, BLOCK), 3, BLOCK, BLOCK=BLOCK),
    "descriptor_too_tall",
)
plant(
    "descriptor_store",
    "out_of_bounds_write",
    lambda: descriptor_store[(4,)](torch.ones(3, BLOCK), 3, BLOCK, BLOCK=BLOCK),
    "descriptor_store",
)
if OLD:
    plant(
        "block_pointer",
        "out_of_bounds_read",
        lambda: elementwise(block_pointer_unchecked, torch.float32),
        "block_pointer_unchecked",
    )
plant(
    "atomic_add", "out_of_bounds_write", lambda: add_past_the_end[grid(50)](torch.zeros(50), 50, BLOCK=BLOCK),
    "add_past_the_end",
)  # fmt: skip
plant("atomic_cas", "out_of_bounds_write", lambda: lock_beyond[(1,)](torch.zeros(4).int(), 4), "lock_beyond")
plant(
    "overlap", "race",
    lambda: overlapping_tiles[(3,)](torch.ones(90), torch.zeros(90), 90, BLOCK=BLOCK), "overlapping_tiles",
)  # fmt: skip
plant("beside_atomic", "race", lambda: counted_and_racing[(3,)](torch.zeros(1), torch.zeros(1).int()),
      "counted_and_racing")  # fmt: skip
plant(
    "accumulates", "uninitialised_read",
    lambda: add_to_output[grid(50)](torch.ones(50), torch.empty_like(torch.ones(50)), 50, BLOCK=BLOCK), "add_to_output",
)  # fmt: skip
plant(
    "accumulates_atomically", "uninitialised_read",
    lambda: add_atomically[grid(50)](torch.ones(1).new_empty(50), 50, BLOCK=BLOCK), "add_atomically",
)  # fmt: skip
plant("host_wrote_half", "uninitialised_read", host_wrote_half, "copy_all")
for label, make in {
    "strided": lambda: torch.empty_strided((8, 8), (8, 1), device="cuda"),
    "like": lambda: torch.empty_like(torch.ones(64)),
    "new_strided": lambda: torch.ones(1).new_empty_strided((8, 8), (8, 1)),
    "permuted": lambda: torch.empty_permuted((8, 8), (1, 0), device="cuda"),
    "integers": lambda: torch.empty(64, dtype=torch.int64, device="cuda"),
    "shorts": lambda: torch.empty(64, dtype=torch.int16, device="cuda"),
    "bools": lambda: torch.empty(64, dtype=torch.bool, device="cuda"),
    "doubles": lambda: torch.empty(64, dtype=torch.float64, device="cuda"),
}.items():
    plant(f"bare-{label}", "uninitialised_read", lambda m=make: never_written(m), "copy_all")
