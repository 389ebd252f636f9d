"""Planted faults as a table for the terminal."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from smith.records.sensitivity import Fate, Sensitivity
from smith.records.shapes import SeenInCalls, ShapeTrial

_STYLES = {Fate.CAUGHT: "green", Fate.SURVIVED: "red"}


def in_calls(seen: SeenInCalls) -> str:
    """What recorded calls show of a survivor, in words."""
    how = "caught only by shape variant" if seen.only_shapes else "caught by recorded calls, as variant"
    return f"{how} {', '.join(seen.variants)}"


def shape_table(trial: ShapeTrial) -> Table:
    """Which variants of the recorded calls the reference answers, and what keeps it from the others."""
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("calls", "used", "left out, because"):
        shown.add_column(name, justify="right" if name == "used" else "left", overflow="fold")
    for one in trial.variants:
        why = ", ".join(f"{count} {reason}" for reason, count in one.refused.items())
        shown.add_row(Text(one.name), f"{one.used} of {one.calls}", Text(why))
    return shown


def fault_table(planted: Sensitivity) -> Table:
    """One line a fault: what it is, what became of it, and which test or reason says so."""
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("operator", "line", "became", "seconds", "by"):
        shown.add_column(name, justify="right" if name == "seconds" else "left", overflow="fold")
    for fault in planted.faults:
        said = f"{fault.caught_by} ({fault.detail})" if fault.caught_by else fault.detail
        if fault.seed is not None:
            said = f"with seeds moved by {fault.seed}: {fault.seed_test}"
        if fault.in_calls is not None:
            said = f"{said}; {in_calls(fault.in_calls)}".removeprefix("; ")
        shown.add_row(
            Text(fault.operator),
            Text(f"{fault.file.rpartition('/')[2]}:{fault.line}"),
            Text(fault.fate.value.replace("_", " "), style=_STYLES.get(fault.fate, "yellow")),
            f"{fault.seconds:.1f}",
            Text(said[:200]),
        )
    return shown
