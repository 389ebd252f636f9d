"""What mining found, for the terminal: the candidates, the funnel, and what the candidates are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from smith.records.candidate import Candidate, Mined

_BAR = 28
_MOST = 8


def candidates(found: Mined) -> Table:
    """One line a candidate, newest first. Text of others is never read as markup."""
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("PR", "merged", "kind", "languages", "operator", "kernels", "tests", "lines"):
        right = column in ("PR", "kernels", "tests", "lines")
        table.add_column(column, justify="right" if right else "left", no_wrap=True)
    split = any(one.split for one in found.candidates)
    if split:
        table.add_column("split", no_wrap=True)
    table.add_column("title", overflow="fold")
    for one in found.candidates:
        signals = one.signals
        table.add_row(
            str(one.pr),
            one.merged_at[:10],
            one.kind.value,
            ",".join(one.languages),
            next(iter(signals.operators), "-") if signals else "-",
            str(sum(len(kernel.code) for kernel in one.kernels)),
            str(len(one.test_files)),
            f"+{signals.lines_added} -{signals.lines_removed}" if signals else "-",
            *([one.split or "-"] if split else []),
            Text(one.title),
        )
    return table


def funnel(found: Mined) -> Table:
    """Every merged pull request, by what became of it; the counts add up."""
    counts = Counter(one.reason for one in found.rejections)
    table = Table(box=None, show_header=False, pad_edge=False)
    for justify in ("right", "left", "left"):
        table.add_column(justify=justify, no_wrap=True)
    rows = [("candidates", len(found.candidates), "green"), *((r, n, "dim") for r, n in counts.most_common())]
    most = max((count for _, count, _ in rows), default=0)
    for name, count, style in rows:
        length = -(-count * _BAR // most) if most else 0
        table.add_row(str(count), Text(name, style="bold" if name == "candidates" else ""), Text("█" * length, style))
    return table


def made_of(found: Mined) -> Iterator[str]:
    """Lines that say what kinds, languages, operators and tests the candidates have."""
    some = found.candidates
    if not some:
        return
    yield f"kinds      {_counted(one.kind.value for one in some)}"
    yield f"languages  {_counted(language for one in some for language in one.languages)}"
    operators = (next(iter(one.signals.operators), "none told") for one in some if one.signals)
    yield f"operators  {_counted(operators)}"
    yield f"tests      {_tests(some)}"


def _tests(some: Iterable[Candidate]) -> str:
    counts = Counter("change tests" if one.test_files else "change none" for one in some)
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def _counted(values: Iterable[str]) -> str:
    counts = Counter(values).most_common()
    rest = sum(count for _, count in counts[_MOST:])
    return ", ".join([f"{count} {name}" for name, count in counts[:_MOST]] + ([f"{rest} other"] if rest else []))
