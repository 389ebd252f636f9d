"""Kernels without a fault, in forms that a careless sanitizer would take for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import planted
import torch
import triton
import triton.language as tl

BLOCK = planted.BLOCK


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, (tl.load(x_ptr + offsets, mask=mask, other=0.0) * 2).to(y_ptr.dtype.element_ty), mask)


@triton.jit
def far_away_but_masked(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets * 1_000_000_007, mask=offsets < 1, other=0.0)
    tl.store(y_ptr + offsets - 100 * (offsets >= n), x, mask=offsets < n)


@triton.jit
def say_hello(y_ptr, flag_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK), 1.5)
    tl.store(flag_ptr, 7)


@triton.jit
def count(x_ptr, bins_ptr, total_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.atomic_add(bins_ptr + tl.load(x_ptr + offsets, mask=mask, other=0), 1, mask=mask)
    tl.atomic_add(total_ptr, tl.sum(mask.to(tl.int32), axis=0))


@triton.jit
def sum_under_lock(x_ptr, y_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(y_ptr, tl.load(y_ptr) + tl.sum(x, axis=0))
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def last_one_sums(x_ptr, parts_ptr, y_ptr, ticket_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(parts_ptr + pid, tl.sum(x, axis=0))
    if pid == 0:
        tl.store(y_ptr, -1.0)
    if tl.atomic_add(ticket_ptr, 1) == tl.num_programs(0) - 1:
        columns = tl.arange(0, BLOCK)
        parts = tl.load(parts_ptr + columns, mask=columns < tl.num_programs(0), other=0.0)
        tl.store(y_ptr, tl.sum(parts, axis=0))


@triton.jit
def through_a_table(table_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    source = tl.load(table_ptr + pid).to(tl.pointer_type(tl.float32))
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + pid * n + offsets, tl.load(source + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * sam + inner[None, :] * sak
    b_ptrs = b_ptr + inner[:, None] * sbk + columns[None, :] * sbn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < K - k * BK), other=0.0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < K - k * BK) & (columns[None, :] < N), other=0.0)
        total += tl.dot(a, b)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * scm + columns[None, :], total.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def through_descriptors(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [2, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [rows, columns], [columns, 1], [2, BLOCK])
    place = [tl.program_id(0) * 2, tl.program_id(1) * BLOCK]
    target.store(place, source.load(place))


@triton.jit
def through_a_passed_descriptor(source, y_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x = tl.reshape(source.load([row, 0]), [BLOCK])
    tl.store(y_ptr + row * BLOCK + tl.arange(0, BLOCK), x)


@triton.jit
def block_pointers(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    source = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))
    target = tl.make_block_ptr(y_ptr, (n,), (1,), (0,), (BLOCK,), (0,))
    for _ in range(0, tl.cdiv(n, BLOCK)):
        tl.store(target, tl.load(source, boundary_check=(0,), padding_option="zero"), boundary_check=(0,))
        source = tl.advance(source, (BLOCK,))
        target = tl.advance(target, (BLOCK,))


def copied(dtype: torch.dtype) -> Any:
    x = torch.arange(50, device="cuda").to(dtype)
    y = torch.empty(50, dtype=dtype, device="cuda")
    z = torch.empty_like(y)
    planted.copy_all[planted.grid(50)](x, y, 50, BLOCK=BLOCK)
    planted.copy_all[planted.grid(50)](y, z, 50, BLOCK=BLOCK)
    return z.float().tolist() == x.float().tolist()


def view_with_offset() -> Any:
    whole = torch.randn(4, 100)
    part = whole[1:3, 10:60]
    out = torch.empty(2, 50)
    for row in range(2):
        scale[planted.grid(50)](part[row], out[row], 50, BLOCK=BLOCK)
    return torch.equal(out, part * 2)


def other_row_of_the_storage() -> Any:
    """A kernel that gets the first row and goes on to the rest: outside the view, inside the storage."""
    whole = torch.randn(4, BLOCK)
    out = torch.empty(4 * BLOCK)
    scale[(4,)](whole[0], out, 4 * BLOCK, BLOCK=BLOCK)
    return torch.equal(out, whole.flatten() * 2)


def in_place() -> Any:
    x = torch.randn(70)
    expected = x * 2
    scale[planted.grid(70)](x, x, 70, BLOCK=BLOCK)
    return torch.equal(x, expected)


def masked_far_away() -> Any:
    out = torch.empty(3)
    far_away_but_masked[(1,)](torch.ones(1), out, 3, BLOCK=BLOCK)
    return out.tolist() == [1.0, 0.0, 0.0]


def same_value() -> Any:
    y, flag = torch.empty(BLOCK), torch.empty(1, dtype=torch.int32)
    say_hello[(3,)](y, flag, BLOCK=BLOCK)
    return y.tolist() == [1.5] * BLOCK and flag.item() == 7


def atomics() -> Any:
    x = torch.arange(100, dtype=torch.int32) % 5
    bins, total = torch.zeros(5, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    count[planted.grid(100)](x, bins, total, 100, BLOCK=BLOCK)
    return bins.tolist() == [20] * 5 and total.item() == 100


def locked() -> Any:
    y = torch.zeros(1)
    sum_under_lock[planted.grid(100)](torch.ones(100), y, torch.zeros(1, dtype=torch.int32), 100, BLOCK=BLOCK)
    return y.item() == 100


def ticketed() -> Any:
    """The first program leaves something behind before it takes its ticket; the last ticket's holder overwrites it."""
    y, ticket = torch.empty(1), torch.zeros(1, dtype=torch.int32)
    last_one_sums[planted.grid(100)](torch.ones(100), torch.empty(4), y, ticket, 100, BLOCK=BLOCK)
    return y.item() == 100


def pointer_table() -> Any:
    parts = [torch.full((20,), float(i)) for i in range(3)]
    table = torch.tensor([part.data_ptr() for part in parts])
    out = torch.empty(3, 20)
    through_a_table[(3,)](table, out, 20, BLOCK=BLOCK)
    return torch.equal(out, torch.stack(parts))


def multiplied(dtype: torch.dtype) -> Any:
    a, b = torch.randn(33, 20).to(dtype), torch.randn(40, 20).to(dtype).T
    c = torch.empty(33, 40, dtype=torch.float32)
    matmul[(3, 3)](a, b, c, 33, 40, 20, *a.stride(), *b.stride(), 40, BM=16, BN=16, BK=16)
    return torch.allclose(c, a.float() @ b.float(), atol=1e-3)


def described() -> Any:
    x = torch.randn(3, 64)
    y = torch.empty(3, 64)
    through_descriptors[(2, 2)](x, y, 3, 64, BLOCK=BLOCK)
    return torch.equal(x, y)


def passed_descriptor() -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    x = torch.randn(3, BLOCK)
    y = torch.empty(3, BLOCK)
    through_a_passed_descriptor[(3,)](TensorDescriptor.from_tensor(x, [1, BLOCK]), y, BLOCK=BLOCK)
    return torch.equal(x, y)


def zero_size() -> Any:
    scale[(1,)](torch.ones(0), torch.empty(0, device="cuda"), 0, BLOCK=BLOCK)
    return True


def written_by(write: Callable[[torch.Tensor], Any]) -> Any:
    """A host operation writes what came from ``torch.empty``, by whatever way."""
    x = torch.empty(50, device="cuda")
    write(x)
    y = torch.empty_like(x)
    scale[planted.grid(50)](x, y, 50, BLOCK=BLOCK)
    return torch.allclose(y, x * 2)


def by_numpy(x: torch.Tensor) -> None:
    x.numpy()[:] = np.arange(50)


def by_view(x: torch.Tensor) -> None:
    x.view(5, 10).T.copy_(torch.randn(10, 5))


def by_out(x: torch.Tensor) -> None:
    torch.add(torch.randn(50), 1.0, out=x)


def by_data(x: torch.Tensor) -> None:
    x.data.normal_()


def by_rows(x: torch.Tensor) -> None:
    for row, value in zip(x.view(10, 5), range(10), strict=True):
        row[:] = value


def by_another_thread(x: torch.Tensor) -> None:
    import threading

    thread = threading.Thread(target=lambda: x.fill_(3.0))
    thread.start()
    thread.join()


def by_parameter(x: torch.Tensor) -> None:
    torch.nn.init.uniform_(torch.nn.Parameter(x))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        scale[planted.grid(x.numel())](x, y, x.numel(), BLOCK=BLOCK)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(gradient)
        scale[planted.grid(out.numel())](gradient.contiguous(), out, out.numel(), BLOCK=BLOCK)
        return out


def backward() -> Any:
    layer = torch.nn.Linear(10, 5, device="cuda")
    x = torch.randn(4, 10, requires_grad=True)
    Doubled.apply(layer(x)).sum().backward()
    return torch.allclose(x.grad, 2 * layer.weight.sum(0).expand(4, 10), atol=1e-5)


def reused_memory() -> Any:
    """Buffers that come and go: addresses return with other contents."""
    good = True
    for _ in range(50):
        good &= copied(torch.float32)
        x = torch.randn(50)
        y = torch.empty(50)
        scale[planted.grid(50)](x, y, 50, BLOCK=BLOCK)
        good &= torch.equal(y, x * 2)
    return good


def all_bytes() -> Any:
    """Every value that a byte can have, written by the host into fresh memory."""
    x = torch.empty(4096, dtype=torch.uint8)
    x.copy_(torch.arange(4096) % 256)
    y = torch.empty_like(x)
    planted.copy_all[planted.grid(4096)](x, y, 4096, BLOCK=BLOCK)
    return torch.equal(x, y)


def nans(dtype: torch.dtype) -> Any:
    x = torch.empty(64, dtype=dtype)
    x.fill_(float("nan"))
    y = torch.empty_like(x)
    planted.copy_all[planted.grid(64)](x, y, 64, BLOCK=BLOCK)
    planted.copy_all[planted.grid(64)](y, x, 64, BLOCK=BLOCK)
    return bool(x.float().isnan().all())


CLEAN: dict[str, Callable[[], Any]] = {
    **{f"copied-{str(d).rpartition('.')[2]}": lambda d=d: copied(d) for d in planted.FLOATS},
    **{f"nans-{str(d).rpartition('.')[2]}": lambda d=d: nans(d) for d in planted.FLOATS},
    **{f"multiplied-{str(d).rpartition('.')[2]}": lambda d=d: multiplied(d) for d in (torch.float32, torch.bfloat16)},
    **{
        f"written-{write.__name__}": lambda write=write: written_by(write)
        for write in (by_numpy, by_view, by_out, by_data, by_rows, by_another_thread, by_parameter)
    },
    "view_with_offset": view_with_offset,
    "other_row_of_the_storage": other_row_of_the_storage,
    "in_place": in_place,
    "masked_far_away": masked_far_away,
    "same_value": same_value,
    "atomics": atomics,
    "locked": locked,
    "ticketed": ticketed,
    "pointer_table": pointer_table,
    "described": described,
    "passed_descriptor": passed_descriptor,
    "zero_size": zero_size,
    "backward": backward,
    "reused_memory": reused_memory,
    "all_bytes": all_bytes,
}
if planted.OLD:

    def pointed() -> Any:
        x, y = torch.randn(50), torch.empty(50)
        block_pointers[(1,)](x, y, 50, BLOCK=BLOCK)
        return torch.equal(x, y)

    CLEAN["block_pointers"] = pointed
