"""What this machine can prove: facts for ``smith doctor``.

Nothing is imported to find out: packages are looked up by their specs and metadata, programs by running them briefly.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smith.device.interpreter.target import TARGETS, Target
from smith.gpus.base import KINDS as GPUS
from smith.gpus.base import Run, Which
from smith.gpus.machine import Machine


@dataclass(frozen=True)
class DeviceFact:
    """Whether one kind of proof, or one thing a proof needs, is available here, and why (not)."""

    name: str
    available: bool
    reason: str
    details: dict[str, str] = field(default_factory=dict)


def package_version(name: str) -> str | None:
    """The version of an importable package, or None; nothing is imported."""
    try:
        if importlib.util.find_spec(name) is None:
            return None
        return importlib.metadata.version(name)
    except (ImportError, ValueError, importlib.metadata.PackageNotFoundError):
        return None


def _packages(*names: str) -> tuple[dict[str, str], list[str]]:
    versions = {name: package_version(name) for name in names}
    found = {name: version for name, version in versions.items() if version is not None}
    return found, [name for name in names if name not in found]


def _interpreter() -> DeviceFact:
    found, missing = _packages("torch", "triton", "numpy")
    if missing:
        return DeviceFact("interpreter", False, f"not importable: {', '.join(missing)}", found)
    return DeviceFact("interpreter", True, "Triton kernels run on the CPU: correctness, never speed", found)


def _compile() -> DeviceFact:
    found, missing = _packages("triton")
    if missing:
        return DeviceFact("compile", False, "not importable: triton", found)
    spec = importlib.util.find_spec("triton")
    folders = [Path(entry) / "backends" for entry in (spec.submodule_search_locations or [])] if spec else []
    backends = sorted(
        entry.name
        for folder in folders
        if folder.is_dir()
        for entry in folder.iterdir()
        if (entry / "compiler.py").is_file()
    )
    able = [
        target.arch
        for target in TARGETS.values()
        if _BACKENDS[target.backend] in backends and _assembles(target, folders)
    ]
    details = {**found, "backends": " ".join(backends), "targets": " ".join(able)}
    if not able:
        return DeviceFact("compile", False, "this triton carries no back end that smith knows a target of", details)
    reason = f"captured launches of Triton kernels compile for {', '.join(able)} (smith validate --targets)"
    return DeviceFact("compile", True, reason, details)


def _assembles(target: Target, folders: Sequence[Path]) -> bool:
    """NVIDIA's kernels are assembled by a program, which not every build of triton carries."""
    if target.backend != "cuda" or os.environ.get("TRITON_PTXAS_PATH"):
        return True
    return any((folder / "nvidia" / "bin" / "ptxas").is_file() for folder in folders)


_BACKENDS = {"hip": "amd", "cuda": "nvidia"}


def _compiler(which: Which, run: Run) -> DeviceFact:
    for name in ("cc", "gcc", "clang"):
        path = which(name)
        if path is not None and run([path, "--version"]).status == 0:
            return DeviceFact("c-compiler", True, f"{name} runs", {"path": path})
    return DeviceFact("c-compiler", False, "none of cc, gcc, clang is on PATH and runs")


def _cpu(compiler: DeviceFact) -> DeviceFact:
    details = {"processors": str(os.cpu_count() or 1)}
    if not compiler.available:
        return DeviceFact("cpu", False, f"no C compiler: {compiler.reason}", details)
    return DeviceFact("cpu", True, "native CPU code: correctness and speed", details)


NEVER_RUN = {
    "rocm": "written against the documented interfaces; never run on an AMD GPU by us",
    "cuda": "written against the documented interfaces; never run on an NVIDIA GPU by us",
}
"""What people should know before they believe a result of this device. To be removed by whoever runs it."""


def _gpu(machine: Machine, kind: str) -> DeviceFact:
    """GPUs of one kind. What is here and cannot be used is told with its reason."""
    found = machine.inventory(kind)
    details = {"proved": NEVER_RUN[kind]}
    if not found.gpus:
        return DeviceFact(kind, False, found.reason, details)
    details["architectures"] = " ".join(sorted({gpu.architecture for gpu in found.gpus}))
    details["gpus"] = "; ".join(map(str, found.gpus))
    usable = machine.matching(kind)
    if not usable.gpus:
        return DeviceFact(kind, False, usable.reason, details)
    return DeviceFact(kind, True, details["gpus"], details)


def _bubblewrap(which: Which, run: Run) -> DeviceFact:
    program = which("bwrap")
    if program is None:
        return DeviceFact("bubblewrap", False, "bwrap is not on PATH")
    outcome = run(
        [
            program,
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--unshare-all",
            "--die-with-parent",
            "true",
        ]
    )
    if outcome.status != 0:
        last = outcome.output.strip().splitlines()[-1:] or ["no message"]
        return DeviceFact("bubblewrap", False, f"bwrap does not work here: {last[0]}", {"path": program})
    return DeviceFact("bubblewrap", True, "a sandbox without network starts", {"path": program})


def _clang_amdgpu(which: Which, run: Run) -> DeviceFact:
    candidates = [
        "/opt/rocm/llvm/bin/clang",
        "amdclang",
        "clang",
        *(f"clang-{version}" for version in range(22, 15, -1)),
    ]
    for candidate in candidates:
        path = which(candidate)
        if path is not None and "amdgcn" in run([path, "--print-targets"]).output:
            reason = "this clang compiles HIP C++ for AMD GPUs; this version of smith does not use it yet"
            return DeviceFact("clang-amdgpu", True, reason, {"path": path})
    return DeviceFact("clang-amdgpu", False, "no clang with the amdgcn target on PATH")


def probe(machine: Machine) -> list[DeviceFact]:
    """All facts, in a fixed order. What touches the machine can be replaced for tests."""
    which, run = machine.which, machine.run
    compiler = _compiler(which, run)
    return [
        _interpreter(),
        _compile(),
        _cpu(compiler),
        *(_gpu(machine, kind) for kind in GPUS),
        compiler,
        _bubblewrap(which, run),
        _clang_amdgpu(which, run),
    ]
