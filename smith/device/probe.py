"""What this machine can prove: facts for ``smith doctor``.

Nothing is imported to find out: packages are looked up by their specs and metadata, programs by running them briefly.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from smith.device.interpreter.target import TARGETS, Target

TIMEOUT = 10.0

Run = Callable[[Sequence[str]], "Outcome"]
Which = Callable[[str], str | None]


@dataclass(frozen=True)
class Outcome:
    """How a short command ended; status None where it could not be started or took too long."""

    status: int | None
    output: str


@dataclass(frozen=True)
class DeviceFact:
    """Whether one kind of proof, or one thing a proof needs, is available here, and why (not)."""

    name: str
    available: bool
    reason: str
    details: dict[str, str] = field(default_factory=dict)


def run_briefly(argv: Sequence[str]) -> Outcome:
    """Run ``argv`` for at most :data:`TIMEOUT` seconds."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Outcome(None, str(error))
    return Outcome(done.returncode, done.stdout.decode(errors="replace"))


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


def _rocm(which: Which, run: Run, kfd: Path) -> DeviceFact:
    if not kfd.exists():
        return DeviceFact("rocm", False, f"no {kfd}")
    if not os.access(kfd, os.R_OK | os.W_OK):
        return DeviceFact("rocm", False, f"{kfd} is not readable and writable for this user")
    info = which("rocminfo")
    outcome = run([info]) if info is not None else Outcome(None, "rocminfo is not on PATH")
    architectures = sorted(set(re.findall(r"\bgfx[0-9a-f]+\b", outcome.output))) if outcome.status == 0 else []
    if not architectures:
        return DeviceFact("rocm", False, f"{kfd} exists, but no architecture is known: rocminfo did not tell")
    return DeviceFact("rocm", True, "an AMD GPU answers", {"architectures": " ".join(architectures)})


def _cuda(which: Which, run: Run) -> DeviceFact:
    program = which("nvidia-smi")
    if program is None:
        return DeviceFact("cuda", False, "nvidia-smi is not on PATH")
    outcome = run([program, "--query-gpu=name,compute_cap", "--format=csv,noheader"])
    lines = [line.strip() for line in outcome.output.splitlines() if line.strip()]
    if outcome.status != 0 or not lines:
        return DeviceFact("cuda", False, "nvidia-smi found no GPU")
    capabilities = sorted({f"sm_{line.rpartition(',')[2].strip().replace('.', '')}" for line in lines})
    return DeviceFact(
        "cuda",
        True,
        "an NVIDIA GPU answers",
        {"gpus": "; ".join(lines), "architectures": " ".join(capabilities)},
    )


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


def probe(*, which: Which = shutil.which, run: Run = run_briefly, kfd: Path = Path("/dev/kfd")) -> list[DeviceFact]:
    """All facts, in a fixed order. What touches the machine can be replaced for tests."""
    compiler = _compiler(which, run)
    return [
        _interpreter(),
        _compile(),
        _cpu(compiler),
        _rocm(which, run, kfd),
        _cuda(which, run),
        compiler,
        _bubblewrap(which, run),
        _clang_amdgpu(which, run),
    ]
