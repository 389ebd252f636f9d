"""Library operators that mean the same as well-known kernels: what a submission would fall back on."""

from __future__ import annotations

from smith.redteam.target import Target

OPERATORS = {
    "softmax": "torch.softmax(tensors[0], -1)",
    "log_softmax": "torch.log_softmax(tensors[0], -1)",
    "matmul": "tensors[0] @ tensors[1]",
    "layer_norm": "torch.nn.functional.layer_norm(tensors[0], tensors[0].shape[-1:], *tensors[1:3])",
    "rms_norm": "torch.nn.functional.rms_norm(tensors[0], tensors[0].shape[-1:], tensors[1], eps=1e-6)",
    "swiglu": "torch.nn.functional.silu(tensors[0]) * tensors[1]",
    "gelu": "torch.nn.functional.gelu(tensors[0])",
    "silu": "torch.nn.functional.silu(tensors[0])",
    "cross_entropy": "torch.nn.functional.cross_entropy(*tensors[:2])",
    "transpose": "tensors[0].t().contiguous()",
    "int8_matvec": "(tensors[0].float() * tensors[1][:, None]) @ tensors[2]",
    "matvec": "tensors[0] @ tensors[1]",
}


def operator_body(target: Target) -> str | None:
    """A body for :meth:`Target.replaced` that calls library operators; None where none of the names is known."""
    assert target.entry is not None
    known = [name for name in target.entry.names if name in OPERATORS]
    if not known:
        return None
    lines = [f'if name == "{name}":\n    return {OPERATORS[name]}' for name in known]
    return "\n" + "\n".join(lines) + "\nreturn real(*args, **kwargs)\n"
