"""Facts about a kernel out of PTX and, where Triton's own tools could assemble it, out of the machine code.

PTX has virtual registers only: registers, local memory and code size are known where ``cuobjdump`` of the triton
package reads the assembled kernel, and are not known otherwise. Spills are not told apart from other local memory.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

SCHEDULERS = 4
REGISTERS = 65536
REGISTER_STEP = 256
BLOCKS = 32
RESERVED_SHARED = 1024
"""Bytes of shared memory that the system takes for each block on compute capability 8.0 and later."""
TIMEOUT_S = 20.0

_MATRIX = re.compile(r"^\s+(?:wgmma\.mma_async|mma\.sync|wmma\.mma|tcgen05\.mma)\b", re.MULTILINE)
# Also behind a predicate; v4 of 32 bits, v2 of 64 and v8 of 16 are 16 bytes.
_WIDE = re.compile(
    r"^\s+(?:@!?%p\d+ )?ld\.(?:global|volatile\.global)[.\w:]*\.(?:v4\.[bufs]32|v2\.[bufs]64|v8\.b16)\b", re.MULTILINE
)
_USAGE = re.compile(r"REG:(\d+)\s+STACK:(\d+)\s+SHARED:(\d+)\s+LOCAL:(\d+)")


def facts(
    ptx: str, cubin: bytes | None, *, shared_bytes: int, shared_limit: int, threads: int, waves: int
) -> dict[str, int | None]:
    """What the PTX and the assembled kernel say. ``threads`` is how many a multiprocessor can hold."""
    found: dict[str, int | None] = {
        "matrix_instructions": len(_MATRIX.findall(ptx)),
        "wide_loads": len(_WIDE.findall(ptx)),
        "lds_bytes": shared_bytes,
    }
    usage = _usage(cubin) if cubin else None
    if usage is not None:
        registers, stack, local = usage
        found["vgpr"], found["scratch_bytes"] = registers, stack + local
        found["occupancy"] = occupancy(
            registers=registers, shared_bytes=shared_bytes, shared_limit=shared_limit, threads=threads, waves=waves
        )
    if cubin:
        found["code_bytes"] = code_bytes(cubin)
    return found


def occupancy(*, registers: int, shared_bytes: int, shared_limit: int, threads: int, waves: int) -> int:
    """Warps per scheduler (a multiprocessor has four), after the rules of the CUDA occupancy calculator.

    Registers are given to a warp in steps of 256; a block takes 1 KiB of shared memory beside its own.
    """
    warp = max(1, -(-registers * 32 // REGISTER_STEP) * REGISTER_STEP)
    warps = min(threads // 32, REGISTERS // warp // SCHEDULERS * SCHEDULERS)
    blocks = min(BLOCKS, warps // waves)
    # What one block may use is what a multiprocessor has, less one block's reserve.
    blocks = min(blocks, (shared_limit + RESERVED_SHARED) // (shared_bytes + RESERVED_SHARED))
    return -(-blocks * waves // SCHEDULERS)


def _usage(cubin: bytes) -> tuple[int, int, int] | None:
    """Registers, stack and local bytes a thread; None where the tool is not there or does not know."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.is_file():
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            done = subprocess.run(
                [str(tool), "-res-usage", file.name], capture_output=True, timeout=TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    match = _USAGE.search(done.stdout.decode(errors="replace"))
    return (int(match.group(1)), int(match.group(2)), int(match.group(4))) if match else None


def code_bytes(cubin: bytes) -> int | None:
    """Bytes of the executable sections of a 64-bit little-endian ELF file; None where it is none."""
    if len(cubin) < 64 or cubin[:6] != b"\x7fELF\x02\x01":
        return None
    start = int.from_bytes(cubin[40:48], "little")
    size, count = (int.from_bytes(cubin[at : at + 2], "little") for at in (58, 60))
    total = 0
    for place in range(start, start + size * count, size):
        header = cubin[place : place + size]
        flags = int.from_bytes(header[8:16], "little")
        if flags & 4:  # SHF_EXECINSTR
            total += int.from_bytes(header[32:40], "little")
    return total
