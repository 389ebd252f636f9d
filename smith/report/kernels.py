"""Kernels side by side, as compiled for one target: base, reference and submissions, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from smith.records.compiled import SideFacts, TargetReport

FACTS = {
    "launches": "launches", "vgpr": "VGPR", "sgpr": "SGPR", "agpr": "AGPR", "vgpr_spills": "VGPR spills",
    "lds_bytes": "LDS bytes", "scratch_bytes": "scratch bytes", "occupancy": "occupancy",
    "matrix_instructions": "matrix instr.", "wide_loads": "wide loads", "code_bytes": "code bytes",
}  # fmt: skip
"""Figures that are shown, and what they are called."""


def compared(
    known: TargetReport | None, submissions: Sequence[tuple[str, TargetReport]]
) -> tuple[list[str], list[list[str]]]:
    """Columns and rows for one target: of each kernel the base and the reference, where a receipt's report (``known``)
    has them, and every submission by its name. Figures that are nothing everywhere are left out."""
    sides: dict[str, list[tuple[str, SideFacts]]] = {}
    for kernel in known.kernels if known is not None else ():
        if kernel.baseline is not None:
            sides.setdefault(kernel.symbol, []).append(("baseline", kernel.baseline))
        sides.setdefault(kernel.symbol, []).append(("reference", kernel))
    for name, found in submissions:
        for kernel in found.kernels:
            sides.setdefault(kernel.symbol, []).append((name, kernel))
    rows = [
        [symbol, side, *(_value(facts, name) for name in FACTS)]
        for symbol, some in sides.items()
        for side, facts in some
    ]
    used = [n for n in range(len(FACTS)) if any(row[n + 2] not in ("", "0") for row in rows)]
    columns = ["kernel", "side", *(list(FACTS.values())[n] for n in used)]
    return columns, [[*row[:2], *(row[n + 2] for n in used)] for row in rows]


def _value(facts: SideFacts, name: str) -> str:
    value = getattr(facts, name, None)
    if name == "launches" and facts.failed:
        return f"{value} ({facts.failed} failed)"
    return "" if value is None else str(value)
