"""Which launches show that the kernels of a task did the work, where launches are counted.

A variant that asks for kernels to be written is about these kernels: a test that passes without them has passed by a
library's operator, or by a kernel of another language. That a kernel was launched is no proof that its result is what
the caller got; that it was not launched is one that it is not.
"""

from __future__ import annotations

from collections.abc import Collection

from smith.freeze.bundle import Bundle, Store
from smith.git.patches import changes
from smith.gpus.base import is_gpu
from smith.records.results import TestResult
from smith.records.task import Variant


def are_counted(bundle: Bundle, device: str) -> bool:
    """Whether launches of the task's kernels are seen on this device: all on the interpreter, and Triton's on a GPU."""
    port = bundle.spec.port
    languages = {port.to} if port is not None else set(bundle.spec.languages)
    return device.startswith("interpreter") or (is_gpu(device) and languages == {"triton"})


def is_asked(bundle: Bundle, device: str) -> bool:
    """Whether every fail-to-pass test of this task must launch one of its kernels, and can be seen to."""
    return bundle.spec.variant.has_own_start and are_counted(bundle, device)


def touched(store: Store, bundle: Bundle, submission: str) -> frozenset[str]:
    """The paths that the tree ``submission`` changes or adds."""
    return frozenset(change.path for change in changes(store.scratch, bundle.spec.source.tree, submission))


def own_launches(bundle: Bundle, result: TestResult, files: Collection[str]) -> dict[str, int]:
    """Launches and nested calls of the task's kernels in one test; ``files`` are those that the submission touched.

    An author's kernels are those that are named; a port's are whatever its own files hold.
    """
    if bundle.spec.variant is Variant.PORT:
        return {kernel: count for kernel, count in result.launches.items() if kernel.partition("::")[0] in files}
    named = {(k.path, symbol.rpartition(".")[2]) for k in bundle.spec.kernels for symbol in k.code}
    return {
        kernel: count
        for kernel, count in result.launches.items()
        if (kernel.partition("::")[0], kernel.rpartition("::")[2].rpartition(".")[2]) in named
    }
