"""Compile files of device code with clang: ``python -m smith.inside.compile_files < plan``, one JSON document.

The plan: ``root``, ``files`` (paths below it), ``targets``, ``clang`` (the compiler), ``includes`` (folders below the
root), ``tmp``, ``jobs``, ``file_s``, ``key`` (hexadecimal) and ``channel``. Nothing that is compiled is run.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from smith.inside.channel import Send, open_channel

STAND_INS = Path(__file__).parents[1] / "device" / "compiler" / "standin"
STANDARD = "-std=c++20"
PROBE = "__attribute__((global)) void probe() {}\n"
WITH_ROCM = "#include <hip/hip_runtime.h>\n__global__ void probe() {}\n"
PROBE_S = 60.0
SAID = 1 << 20


def command(plan: dict[str, Any], target: str, file: str, out: str, *, stand_ins: bool) -> list[str]:
    """One file for one target, to assembly. Warnings are of no interest, and each error names its kind."""
    words = [
        plan["clang"], "-x", "hip", "--cuda-device-only", f"--offload-arch={target}", "-O3", STANDARD, "-S", "-w",
        "-D__HIP_PLATFORM_AMD__=1", "-DUSE_ROCM=1", "-fno-color-diagnostics", "-fno-caret-diagnostics",
        "-ferror-limit=40", "-fdiagnostics-show-category=name",
    ]  # fmt: skip
    if stand_ins:
        words += ["-nogpuinc", "-nogpulib", f"-I{STAND_INS}", "-include", "__clang_hip_runtime_wrapper.h"]
    return [*words, *(f"-I{folder}" for folder in plan["includes"]), "-o", out, file]


def ran(argv: list[str], cwd: str, limit_s: float) -> tuple[int | None, str]:
    """Exit status (None: over its time) and what was said, of a process whose children end with it."""
    child = subprocess.Popen(
        argv,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = child.communicate(timeout=limit_s)
        return child.returncode, said[:SAID].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return None, ""


def probe(plan: dict[str, Any], text: str, target: str, *, stand_ins: bool) -> str:
    """Why a file of one kernel does not compile, in a line; empty where it does."""
    file = Path(plan["tmp"]) / f"probe-{target}-{stand_ins}.hip"
    file.write_text(text)
    argv = command({**plan, "includes": []}, target, str(file), f"{file}.s", stand_ins=stand_ins)
    if text == PROBE:  # without the wrapper: it includes the standard library
        argv = [word for word in argv if word not in ("-include", "__clang_hip_runtime_wrapper.h")]
    status, said = ran(argv, plan["root"], PROBE_S)
    lines = [line for line in said.splitlines() if "error:" in line]
    return "" if status == 0 else (lines[0].partition(";")[0] if lines else f"status {status}")[:400]


def compiled(plan: dict[str, Any], path: str, target: str, number: int, stand_ins: bool) -> dict[str, Any]:
    """What came of one file on one target, as a record."""
    clang: Any = importlib.import_module("smith.device.compiler.clang")
    find_target: Any = importlib.import_module("smith.device.interpreter.target").find_target
    began = time.monotonic()
    out = os.path.join(plan["tmp"], f"{number}-{target}.s")
    status, said = ran(command(plan, target, path, out, stand_ins=stand_ins), plan["root"], plan["file_s"])
    answer: dict[str, Any] = {"path": path, "stand_ins": stand_ins}
    if status is None:
        answer |= {"failure": "timeout", "detail": f"over {plan['file_s']:g} s"}
    elif status != 0:
        failure, detail = clang.reason_of(said, status, stand_ins=stand_ins)
        answer |= {"failure": failure, "detail": detail}
    else:
        found = clang.kernels(Path(out).read_text("utf-8", "replace"), target, find_target(target).shared_memory)
        os.unlink(out)
        answer |= {"kernels": found} if found else {"failure": "no_kernel", "detail": why_none(plan, path)}
    return {**answer, "seconds": round(time.monotonic() - began, 3)}


def why_none(plan: dict[str, Any], path: str) -> str:
    """Why a file that compiles holds no kernel."""
    text = Path(plan["root"], path).read_text("utf-8", "replace")
    if "__global__" in text:
        return "its kernels are templates, and nothing in the file instantiates one"
    return "it defines device functions, and no kernel of its own"


def serve(plan: dict[str, Any], send: Send) -> None:
    """Compile every file for every target that the compiler knows."""
    work = []
    for target in plan["targets"]:
        why = probe(plan, PROBE, target, stand_ins=True)
        if why:
            for path in plan["files"]:
                send("file", target=target, path=path, failure="not_tried", detail=f"clang cannot: {why}"[:600])
            continue
        stand_ins = probe(plan, WITH_ROCM, target, stand_ins=False) != ""
        work += [(path, target, number, stand_ins) for number, path in enumerate(plan["files"])]
    with ThreadPoolExecutor(plan["jobs"]) as pool:
        for (_, target, _, _), answer in zip(work, pool.map(lambda one: compiled(plan, *one), work), strict=True):
            send("file", target=target, **answer)


def main() -> int:
    """Read the plan and serve."""
    plan: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    send = open_channel(int(plan["channel"]), bytes.fromhex(plan.pop("key")))
    said = subprocess.run([plan["clang"], "--version"], capture_output=True, check=False, timeout=PROBE_S)
    version = said.stdout.decode("utf-8", "replace").strip().splitlines()
    send("clang", version=version[0][:200] if version else "")
    serve(plan, send)
    send("end", status=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
