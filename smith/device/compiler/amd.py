"""Facts about a kernel out of AMD assembly, and how many waves fit.

The figures stand in the code object's metadata and in LLVM's comments; occupancy follows the rules that LLVM's AMDGPU
back end and the CDNA instruction set guides give for these targets:

- A SIMD holds at most 8 waves and 512 vector registers a lane, which ordinary and accumulation registers share; a wave
  gets them in steps of 8.
- It has 800 scalar registers, which a wave gets in steps of 16, with 6 for VCC, trap and XNACK state.
- A compute unit has 4 SIMDs and the target's LDS; a workgroup gets LDS in steps of 512 bytes (gfx950: 1280), and at
  most 16 workgroups of more than one wave are resident, for that many barriers there are.
"""

from __future__ import annotations

import re

WAVES_PER_SIMD = 8
SIMDS = 4
VECTOR_REGISTERS = 512
VECTOR_STEP = 8
SCALAR_REGISTERS = 800
SCALAR_STEP = 16
BARRIERS = 16
LDS_STEP = {"gfx950": 1280}
LDS_DEFAULT_STEP = 512

_METADATA = {
    "vgpr": "vgpr_count",
    "sgpr": "sgpr_count",
    "agpr": "agpr_count",
    "vgpr_spills": "vgpr_spill_count",
    "sgpr_spills": "sgpr_spill_count",
    "scratch_bytes": "private_segment_fixed_size",
}
_MATRIX = re.compile(r"^\s+v_s?mfma[cs]?_\w+|^\s+v_s?wmmac?_\w+", re.MULTILINE)
_WIDE = re.compile(r"^\s+(?:global|buffer|flat|scratch)_load_(?:dwordx4|b128)\b", re.MULTILINE)
_CODE = re.compile(r"^; codeLenInByte = (\d+)", re.MULTILINE)


def facts(assembly: str, arch: str, *, lds_bytes: int, lds_limit: int, waves: int) -> dict[str, int | None]:
    """What the assembly of one kernel says.

    ``lds_bytes`` is what a workgroup of ``waves`` waves asks for at launch, ``lds_limit`` what a compute unit has.
    """
    found: dict[str, int | None] = {}
    for name, key in _METADATA.items():
        match = re.search(rf"^\s+(?:- )?\.{key}:\s+(\d+)", assembly, re.MULTILINE)
        found[name] = int(match.group(1)) if match else None
    code = _CODE.search(assembly)
    found["code_bytes"] = int(code.group(1)) if code else None
    found["matrix_instructions"] = len(_MATRIX.findall(assembly))
    found["wide_loads"] = len(_WIDE.findall(assembly))
    found["lds_bytes"] = lds_bytes
    vgpr, sgpr = found["vgpr"], found["sgpr"]
    if vgpr is not None and sgpr is not None:
        found["occupancy"] = occupancy(
            arch, registers=vgpr, scalars=sgpr, lds_bytes=lds_bytes, lds_limit=lds_limit, waves=waves
        )
    return found


def occupancy(arch: str, *, registers: int, scalars: int, lds_bytes: int, lds_limit: int, waves: int) -> int:
    """Waves per SIMD, of the busiest SIMD, when nothing but this kernel runs; 0 where no workgroup fits.

    ``registers`` counts ordinary and accumulation registers of a lane together, as ``.vgpr_count`` does on CDNA 2 and
    later.
    """
    by_registers = VECTOR_REGISTERS // _up(max(1, registers), VECTOR_STEP)
    by_scalars = SCALAR_REGISTERS // _up(max(1, scalars), SCALAR_STEP)
    simd = min(WAVES_PER_SIMD, by_registers, by_scalars)
    groups = simd * SIMDS // waves
    if waves > 1:
        groups = min(groups, BARRIERS)
    if lds_bytes:
        groups = min(groups, lds_limit // _up(lds_bytes, LDS_STEP.get(arch, LDS_DEFAULT_STEP)))
    return -(-groups * waves // SIMDS)


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
