"""What the compile gate found, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from smith.cli.common import screen
from smith.records.compiled import KernelReport, SideFacts, TargetReport
from smith.records.compiled_files import FileReports
from smith.records.receipt import Receipt
from smith.report.kernels import compared

_STYLES = {"compiled": "green", "failed": "red", "not_compilable": "yellow"}
_COLUMNS = {
    "launches": "launches",
    "vgpr": "VGPR",
    "sgpr": "SGPR",
    "agpr": "AGPR",
    "vgpr_spills": "VGPR\nspills",
    "sgpr_spills": "SGPR\nspills",
    "lds_bytes": "LDS\nbytes",
    "scratch_bytes": "scratch\nbytes",
    "occupancy": "occu-\npancy",
    "matrix_instructions": "matrix\ninstr.",
    "wide_loads": "wide\nloads",
    "code_bytes": "code\nbytes",
}


def verdict(found: TargetReport) -> str:
    """One target in a few words."""
    words: str = found.verdict
    if found.launches or found.base_launches or found.files is None:
        words += f", {found.compiled} of {found.launches} launches"
    if found.base_launches:
        words += f" (base {found.base_compiled} of {found.base_launches})"
    words += f", {found.not_captured} launches not captured" if found.not_captured else ""
    if found.files is not None:
        sides = {side: [f.failure for f in found.files.files if f.side == side] for side in ("reference", "base")}
        sides["reference"] += [f.failure for f in found.files.files if f.side == "submission"]
        here, base = (f"{some.count(None)} of {len(some)}" for some in sides.values())
        words += f", {here} C++ files" + (f" (base {base})" if sides["base"] else "")
    return words


def _of_files(found: FileReports) -> list[str]:
    """What is to be said of each file, and how they were compiled."""
    lines = []
    for file in found.files:
        came = f"{file.kernels} kernels" if file.failure is None else f"{file.failure.value}: {file.detail}"
        lines.append(f"{file.side}: {file.path}: {came}")
    how = ", with stand-in headers in place of ROCm's" if found.stand_ins else ""
    compiler = found.compiler or "no clang"
    return [
        *lines,
        f"files are compiled one by one{how} ({compiler}): no launch, so waves are the most that are allowed",
    ]


def lines(receipt: Receipt) -> list[str]:
    """A receipt's targets, one a line."""
    return [f"{target}: {verdict(found)}" for target, found in receipt.targets.items()]


def summary(receipts: Sequence[Receipt]) -> Table:
    """Tasks against targets."""
    shown = Table(box=box.SIMPLE_HEAD)
    for name in ("task", "target", "kernels compile"):
        shown.add_column(name, no_wrap=name != "kernels compile")
    for receipt in receipts:
        for target, found in receipt.targets.items():
            words = Text(verdict(found), style=_STYLES[found.verdict])
            words.append(f": {found.reason}" if found.reason else "", style="default")
            shown.add_row(Text(receipt.task), Text(target), words)
        if not receipt.targets:
            ran = "launches are captured on the interpreter only" if receipt.arms else "nothing was run"
            shown.add_row(Text(receipt.task), Text("-"), Text(f"{ran}, so nothing was compiled"))
    return shown


def show(task: str, receipts: Sequence[Receipt]) -> None:
    """Print what the receipts of a task know, target by target."""
    known = [receipt for receipt in receipts if receipt.targets]
    for receipt in known:
        for target, found in receipt.targets.items():
            by = f" (triton {found.compiler})" if found.compiler else ""
            title = f"{receipt.device} -> {target}{by}: {verdict(found)}"
            screen.print(Text(title, style=_STYLES[found.verdict]), soft_wrap=True)
            if found.kernels:
                screen.print(_table(found))
            for failed in found.failures:
                said = f"  {failed.side}: {failed.symbol}: {failed.launches} x {failed.code.value}: {failed.detail}"
                screen.print(Text(said), soft_wrap=True)
            if found.dropped_options:
                options = ", ".join(found.dropped_options)
                screen.print(Text(f"  launch options that {target} does not know, left out: {options}"))
            for words in filter(None, (found.reason, found.caveat, *(_of_files(found.files) if found.files else ()))):
                screen.print(Text(f"  {words}"), soft_wrap=True)
    if known:
        said = "largest figures over the launches of a kernel, of occupancy the smallest; - is not known"
        screen.print(Text(f"base > reference; {said}"))
    else:
        screen.print(Text(f"{task}: no receipt knows; run: smith validate {task} --targets gfx942,gfx950"))


def show_submission(targets: Mapping[str, TargetReport], known: Mapping[str, TargetReport]) -> None:
    """Print what compiling a submission gave, below the base and the reference where ``known`` has them."""
    for target, found in targets.items():
        by = f" (triton {found.compiler})" if found.compiler else ""
        screen.print(Text(f"{target}{by}: {verdict(found)}", style=_STYLES[found.verdict]), soft_wrap=True)
        columns, rows = compared(known.get(target), [("submission", found)])
        if rows:
            shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
            for place, name in enumerate(columns):
                shown.add_column(name, justify="right" if place > 1 else "left", overflow="fold", no_wrap=place > 0)
            for row in rows:
                shown.add_row(*(Text(text) for text in row))
            screen.print(shown)
        for failed in found.failures:
            said = f"  {failed.symbol}: {failed.launches} x {failed.code.value}: {failed.detail}"
            screen.print(Text(said), soft_wrap=True)
        for words in filter(None, (found.reason, *(_of_files(found.files) if found.files else ()))):
            screen.print(Text(f"  {words}"), soft_wrap=True)


def _table(found: TargetReport) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    shown.add_column("kernel", overflow="fold")
    columns = [name for name in _COLUMNS if any(getattr(kernel, name) is not None for kernel in found.kernels)]
    columns = [name for name in columns if name != "launches" or found.launches or found.base_launches]
    for name in columns:
        shown.add_column(_COLUMNS[name], justify="right", no_wrap=True)
    names = [kernel.symbol.rpartition("::")[2] for kernel in found.kernels]
    for kernel, name in zip(found.kernels, names, strict=True):
        shown.add_row(
            Text(name if names.count(name) == 1 else kernel.symbol), *(Text(cell(kernel, name)) for name in columns)
        )
    return shown


def cell(kernel: KernelReport, name: str) -> str:
    """One figure: a single number where both sides have it or only the reference has a kernel of that name."""
    here = _figure(kernel, name)
    before = _figure(kernel.baseline, name) if kernel.baseline is not None else here
    return here if here == before else f"{before} > {here}"


def _figure(side: SideFacts, name: str) -> str:
    value = getattr(side, name)
    if name == "launches" and side.failed:
        return f"{value} ({side.failed} failed)"
    return "-" if value is None else str(value)
