"""What tests of variants hand in for the sample upstream."""

from __future__ import annotations

from pathlib import Path

from smith.freeze.bundle import Bundle, Store
from smith.git.patches import diff
from smith.git.trees import materialise, snapshot

TRITON_TRANSPOSE = '''"""Out-of-place transpose."""

import torch
import triton
import triton.language as tl


@triton.jit
def _transpose_kernel(X, Y, rows, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols), other=0.0)
    tl.store(Y + c[:, None] * rows + r[None, :], tl.trans(x), mask=(c[:, None] < cols) & (r[None, :] < rows))


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Return a contiguous copy of the transposed fp32 matrix ``x``."""
    rows, cols = x.shape
    x = x.contiguous()
    y = torch.empty((cols, rows), dtype=torch.float32)
    _transpose_kernel[(triton.cdiv(rows, 16), triton.cdiv(cols, 16))](x, y, rows, cols, BLOCK=16)
    return y
'''
"""A port of the native transpose."""

TORCH_TRANSPOSE = '''"""Out-of-place transpose."""


def transpose(x):
    return x.t().contiguous()
'''
"""What passes every test of it without any kernel."""


def patch_of(store: Store, bundle: Bundle, folder: Path, changed: dict[str, str]) -> bytes:
    """The patch that gives these files these texts. ``folder`` must not be there yet."""
    start = bundle.spec.source.tree
    materialise(store.scratch, start, folder)
    for name, text in changed.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return diff(store.scratch, start, snapshot(store.scratch, folder, base=start))
