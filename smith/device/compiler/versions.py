"""What differs between versions of Triton when nothing but compiling is wanted."""

from __future__ import annotations

import sys
from typing import Any


def spare_a_digest() -> None:
    """Triton digests its libraries, a second's work, to tell caches on disk apart; each cache is a fresh one here."""
    for name in ("triton.runtime.cache", "triton.compiler.compiler"):
        module: Any = sys.modules.get(name)
        if hasattr(module, "triton_key"):
            module.triton_key = lambda: "smith"


def do_without_linker() -> str:
    """Before 3.6 or so Triton links AMD code with a program of ROCm. Where it is absent, stop at the assembled object.

    Gives the words for a report; empty where code is linked.
    """
    try:
        from triton._C.libtriton import amd
        from triton.backends.amd.compiler import HIPBackend
    except ImportError:
        return ""
    backend: Any = HIPBackend
    if not hasattr(backend, "path_to_rocm_lld"):
        return ""
    try:
        backend.path_to_rocm_lld()
        return ""
    except Exception:  # a bare one, of Triton's own
        pass

    def make_hsaco(src: str, metadata: Any, options: Any) -> bytes:
        return bytes(amd.assemble_amdgcn(src, options.arch, ""))

    backend.make_hsaco = staticmethod(make_hsaco)
    backend.hash = lambda self: f"{self.target} not linked"
    return "AMD code is assembled and not linked: this triton needs ld.lld of ROCm"
